import { readFileSync } from "node:fs";
import { rootCertificates } from "node:tls";
import { PserverError } from "../protocol/index.ts";
import { errnoCode } from "../system/file-errors.ts";

/** Files of the certificates that systems trust, such as Debian and Red Hat; the first that exists is read. */
const SYSTEM_BUNDLES = [
  "/etc/ssl/certs/ca-certificates.crt",
  "/etc/pki/tls/certs/ca-bundle.crt",
  "/etc/ssl/ca-bundle.pem",
  "/etc/ssl/cert.pem",
];

const CERTIFICATE = /-----BEGIN CERTIFICATE-----[^-]+-----END CERTIFICATE-----/g;

/** Error codes of Node.js for a refused certificate. */
const REFUSED_CERTIFICATE =
  /^(?!ERR_SSL_).*CERT|^INVALID_(?:CA|PURPOSE)$|^HOSTNAME_MISMATCH$|^UNABLE_TO_VERIFY_LEAF_SIGNATURE$/;

/** Texts of nats.js for a broker that offers no TLS although options ask for it. */
const NO_TLS_TEXT = /server does not support 'tls'|tls is not available/i;

/**
 * The certificates that are trusted if no file is given, each once, as PEM text: those of Node.js, of the
 * file in `NODE_EXTRA_CA_CERTS`, and of the operating system: the file in `SSL_CERT_FILE`, else its
 * bundle. Node.js alone does not know an authority that an administrator has installed.
 */
export function trustedCertificates(): string {
  const { env } = process;
  const system = env["SSL_CERT_FILE"] ? [env["SSL_CERT_FILE"]] : SYSTEM_BUNDLES;
  const texts = [
    ...rootCertificates,
    readIfThere([env["NODE_EXTRA_CA_CERTS"] ?? ""]),
    readIfThere(system),
  ];
  const found = texts.flatMap((text) => text.match(CERTIFICATE) ?? []);
  // The same certificate may be wrapped at different line lengths.
  return [...new Map(found.map((pem) => [pem.replaceAll(/\s/g, ""), pem])).values()].join("\n");
}

/**
 * NO_TLS if TLS is the reason why a connection failed; undefined for any other failure. `where` names
 * the broker. For a refused certificate `details.certificate` is the code of Node.js.
 */
export function tlsFailure(error: unknown, where: string): PserverError | undefined {
  if (!(error instanceof Error)) return undefined;
  const cause = { cause: error };
  if (NO_TLS_TEXT.test(error.message)) {
    const message = `the broker at ${where} offers no TLS, and nothing has been sent to it`;
    return new PserverError("NO_TLS", message, { server: where }, cause);
  }
  const certificate = errnoCode(error);
  if (certificate === undefined || !REFUSED_CERTIFICATE.test(certificate)) return undefined;
  const message = `the certificate of the broker at ${where} is refused: ${error.message}`;
  return new PserverError("NO_TLS", message, { server: where, certificate }, cause);
}

/** The text of the first file that can be read; "" if none can. */
function readIfThere(paths: readonly string[]): string {
  for (const path of paths) {
    try {
      if (path !== "") return readFileSync(path, "latin1");
    } catch {
      // This system has another bundle. Without any, brokers that need it are refused as untrusted.
    }
  }
  return "";
}
