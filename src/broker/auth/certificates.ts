import { execFile } from "node:child_process";
import { generateKeyPair, randomBytes } from "node:crypto";
import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { isIP } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { promisify } from "node:util";
import { PserverError } from "../../protocol/errors.ts";
import { io } from "../../system/file-errors.ts";

/** An authority, and a certificate that it has signed for a broker: all in PEM. */
export interface Certificates {
  readonly authority: string;
  readonly authorityKey: string;
  readonly server: string;
  readonly serverKey: string;
}

/** How long the certificates are valid: nothing renews them. */
const VALID_DAYS = 3_650;

const SERIAL_BYTES = 16;

const run = promisify(execFile);
const generate = promisify(generateKeyPair);

/**
 * Makes an authority of its own and a certificate for the brokers of `names`, which are host names or IP addresses. The
 * certificate also serves a broker that connects to another one of its cluster. Node.js makes the keys; `openssl`
 * makes the certificates, which Node.js cannot.
 * @throws UNSUPPORTED if there is no `openssl`, or it cannot do that; IO, DISK_FULL.
 */
export async function makeCertificates(names: readonly string[]): Promise<Certificates> {
  const directory = await io("make a directory in", tmpdir(), mkdtemp(join(tmpdir(), "pserver-")));
  try {
    return await new CertificateMaker(directory).make(names);
  } finally {
    await rm(directory, { recursive: true, force: true });
  }
}

/** Makes certificates in a directory that only this user can read. */
class CertificateMaker {
  readonly #directory: string;

  constructor(directory: string) {
    this.#directory = directory;
  }

  async make(names: readonly string[]): Promise<Certificates> {
    const [authorityKey, serverKey] = await Promise.all([makeKey(), makeKey()]);
    await this.#write("ca.key", authorityKey);
    await this.#write("server.key", serverKey);
    await this.#write("ca.conf", requestConfig("pserver authority", AUTHORITY_EXTENSIONS));
    await this.#write("server.conf", requestConfig("pserver broker", serverExtensions(names)));
    const authority = await this.#openssl(
      ...["req", "-new", "-x509", "-config", "ca.conf", "-key", "ca.key"],
      ...validity(),
    );
    await this.#write("ca.pem", authority);
    const request = await this.#openssl(
      ...["req", "-new", "-config", "server.conf", "-key", "server.key"],
    );
    await this.#write("server.csr", request);
    const server = await this.#openssl(
      ...["x509", "-req", "-in", "server.csr", "-CA", "ca.pem", "-CAkey", "ca.key"],
      ...["-extfile", "server.conf", "-extensions", "extensions"],
      ...validity(),
    );
    return { authority, authorityKey, server, serverKey };
  }

  async #write(name: string, text: string): Promise<void> {
    const path = join(this.#directory, name);
    await io("write", path, writeFile(path, text, { mode: 0o600 }));
  }

  /** Runs `openssl` in the directory; returns what it prints. */
  async #openssl(...args: string[]): Promise<string> {
    try {
      return (await run("openssl", args, { cwd: this.#directory })).stdout;
    } catch (cause) {
      const { code, stderr = "" } = cause as { code?: unknown; stderr?: string };
      const reason =
        code === "ENOENT" ? "there is no openssl: install it" : stderr.trim().split("\n").at(-1);
      const message = `cannot make certificates with openssl ${args[0]}: ${reason}`;
      throw new PserverError("UNSUPPORTED", message, { program: "openssl" }, { cause });
    }
  }
}

async function makeKey(): Promise<string> {
  const { privateKey } = await generate("ec", { namedCurve: "prime256v1" });
  return privateKey.export({ type: "pkcs8", format: "pem" }).toString();
}

function validity(): string[] {
  // With its highest bit set, the number would be negative.
  const serial = randomBytes(SERIAL_BYTES);
  serial.writeUInt8(serial.readUInt8(0) & 0x7f, 0);
  return ["-sha256", "-days", String(VALID_DAYS), "-set_serial", `0x${serial.toString("hex")}`];
}

const AUTHORITY_EXTENSIONS = [
  "basicConstraints = critical, CA:TRUE, pathlen:0",
  "keyUsage = critical, keyCertSign, cRLSign",
  "subjectKeyIdentifier = hash",
];

function serverExtensions(names: readonly string[]): string[] {
  const alternatives = names.map((name) => `${isIP(name) === 0 ? "DNS" : "IP"}:${name}`);
  return [
    "basicConstraints = critical, CA:FALSE",
    "keyUsage = critical, digitalSignature",
    "extendedKeyUsage = serverAuth, clientAuth",
    "subjectKeyIdentifier = hash",
    `subjectAltName = ${alternatives.join(", ")}`,
  ];
}

/** Returns a configuration of `openssl req`, for a certificate with these extensions. */
function requestConfig(commonName: string, extensions: readonly string[]): string {
  const lines = [
    ...["[req]", "prompt = no", "distinguished_name = name", "x509_extensions = extensions"],
    ...["[name]", `CN = ${commonName}`],
    ...["[extensions]", ...extensions],
  ];
  return `${lines.join("\n")}\n`;
}
