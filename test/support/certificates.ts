import { execFile } from "node:child_process";
import { lookup } from "node:dns/promises";
import { promisify } from "node:util";

const run = promisify(execFile);

/** Whether this machine has the name that a certificate is for: without /etc/hosts it may have none. */
export const LOCALHOST_IS_KNOWN: boolean = await lookup("localhost").then(
  () => true,
  () => false,
);

/**
 * Writes into a directory, each with its key beside it: `ca.pem`, an authority; `server.pem`, a
 * certificate of it for localhost and 127.0.0.1; `named.pem`, one of it for localhost alone; and
 * `other-ca.pem`, an authority that signed nothing.
 */
export async function makeCertificates(directory: string): Promise<void> {
  const make = (name: string, ...args: string[]): Promise<unknown> => {
    const key = ["-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes"];
    const files = ["-keyout", `${name}.key`, "-out", `${name}.pem`];
    const all = ["req", "-x509", ...key, "-days", "1", "-subj", `/CN=${name}`, ...args, ...files];
    return run("openssl", all, { cwd: directory });
  };
  await make("ca");
  await make("other-ca");
  const signed = (name: string, names: string): Promise<unknown> =>
    make(
      name,
      ...["-addext", `subjectAltName=${names}`],
      ...["-addext", "basicConstraints=critical,CA:FALSE"],
      ...["-CA", "ca.pem", "-CAkey", "ca.key"],
    );
  await signed("server", "DNS:localhost,IP:127.0.0.1");
  await signed("named", "DNS:localhost");
}
