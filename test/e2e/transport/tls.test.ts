// Proves that an address with tls:// never sends anything to a broker without TLS: a stand-in for a
// broker keeps every byte that it gets, at the first connection, at a reconnect, and at an address that
// another broker has named; and that certificates are trusted as documented, by the client, by hosts
// and by the command, on a real broker with TLS.
import { mkdtemp, readFile, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, onTestFinished, test, vi } from "vitest";
import { connect } from "../../../src/client/index.ts";
import { resolveConnection } from "../../../src/client/wire/broker-settings.ts";
import { connectForBulk } from "../../../src/transport/bulk-transport.ts";
import { openConnection } from "../../../src/transport/connection.ts";
import { runProcess } from "../../cli/spawn-command.ts";
import { startTestBroker, type TestBroker } from "../../support/broker.ts";
import { LOCALHOST_IS_KNOWN, makeCertificates } from "../../support/certificates.ts";
import {
  type FakeBroker,
  type FakeBrokerOptions,
  startFakeBroker,
} from "../../support/fake-broker.ts";
import { HANG_MS } from "../../support/limits.ts";

const WAIT = { timeout: HANG_MS, interval: 20 };
const ROLE = { name: "test", inboxPrefix: "_INBOX" };
const CREDENTIALS = { user: "alice", password: "pass-word" };

let home: string;
let secure: TestBroker;
const file = (name: string): string => join(home, name);

beforeAll(async () => {
  home = await mkdtemp(join(tmpdir(), "pserver-tls-"));
  await makeCertificates(home);
  secure = await startTestBroker({ extraConfig: tlsBlock("server") });
});

afterAll(async () => {
  await secure.remove();
  await rm(home, { recursive: true, force: true });
});

const tlsBlock = (name: string): string =>
  `tls { cert_file: "${file(`${name}.pem`)}", key_file: "${file(`${name}.key`)}" }`;

async function fake(options: FakeBrokerOptions = {}): Promise<FakeBroker> {
  const broker = await startFakeBroker(options);
  onTestFinished(() => broker.close());
  return broker;
}

async function fakeWithTls(options: FakeBrokerOptions = {}): Promise<FakeBroker> {
  const [key, cert] = await Promise.all(
    ["server.key", "server.pem"].map((name) => readFile(file(name), "utf8")),
  );
  return await startFakeBroker({ ...options, tls: { key: key ?? "", cert: cert ?? "" } });
}

/** A connection that its address alone has asked to be protected. */
async function connectedTo({ port }: FakeBroker): Promise<void> {
  vi.stubEnv("SSL_CERT_FILE", file("ca.pem"));
  onTestFinished(() => void vi.unstubAllEnvs());
  const settings = resolveConnection({ ...CREDENTIALS, url: `tls://127.0.0.1:${port}` });
  const connection = await connectForBulk(settings);
  onTestFinished(() => connection.close());
}

test("an address with tls:// is dialled once, so that no broker logs a connection that broke off", async () => {
  const broker = await fakeWithTls();
  onTestFinished(() => broker.close());
  await connectedTo(broker);
  expect(broker.dialled).toBe(1);
});

describe("a broker without TLS gets nothing from an address with tls://", () => {
  test("of the client, with its password", async () => {
    const plain = await fake();
    const url = `tls://127.0.0.1:${plain.port}`;
    await expect(connect({ url, job: "j", ...CREDENTIALS })).rejects.toMatchObject({
      code: "NO_TLS",
    });
    expect([plain.dialled, plain.received]).toEqual([1, ""]);
  });

  test("of a host, with its password in the address or beside it", async () => {
    const plain = await fake();
    const servers = [`TLS://127.0.0.1:${plain.port}`];
    const settings = { servers, timeoutMs: HANG_MS, ...CREDENTIALS };
    await expect(openConnection(settings, ROLE)).rejects.toMatchObject({ code: "NO_TLS" });
    expect([plain.dialled, plain.received]).toEqual([1, ""]);
  });

  test("of the command, which says so and hints at nats://", async () => {
    const plain = await fake();
    const url = `tls://alice:pass-word@127.0.0.1:${plain.port}`;
    const { code, stderr } = await runProcess(["status", "--url", url]);
    expect(stderr).toMatch(/^pserver: NO_TLS: the broker at 127\.0\.0\.1:\d+ offers no TLS/);
    expect(stderr).toContain("\nhint: ");
    expect([code, plain.received]).toEqual([4, ""]);
  });

  test("of a client that had a broker with TLS there before", async () => {
    const first = await fakeWithTls();
    await connectedTo(first);
    expect(first.received).toContain("pass-word");
    await first.close();
    const second = await fake({ port: first.port });
    await vi.waitFor(() => expect(second.dialled).toBeGreaterThan(1), WAIT);
    expect(second.received).toBe("");
  });

  test("where a broker with TLS has named it as another of its cluster", async () => {
    const plain = await fake();
    const info = { connect_urls: [`127.0.0.1:${plain.port}`] };
    const first = await fakeWithTls({ info });
    await connectedTo(first);
    await first.close();
    await vi.waitFor(() => expect(plain.dialled).toBeGreaterThan(0), WAIT);
    expect(plain.received).toBe("");
  });
});

describe("a certificate", () => {
  const status = (
    url: string,
    environment: Readonly<Record<string, string>> = {},
  ): ReturnType<typeof runProcess> => runProcess(["status", "--url", url], { environment });

  test("of an unknown authority is refused, with a hint at --tlsca", async () => {
    const { code, stderr } = await status(`tls://127.0.0.1:${secure.port}`);
    expect(stderr).toMatch(/^pserver: NO_TLS: the certificate of the broker at .* is refused: /);
    expect(stderr).toContain("--tlsca");
    expect(code).toBe(4);
  });

  test.each(["NODE_EXTRA_CA_CERTS", "SSL_CERT_FILE", "NATS_CA"])(
    "of an authority in %s is trusted",
    async (name) => {
      const url = `tls://127.0.0.1:${secure.port}`;
      // Nobody serves the job: the broker has let the command in.
      expect(await status(url, { [name]: file("ca.pem") })).toMatchObject({
        stderr: expect.stringContaining("NO_HOST"),
      });
    },
  );

  test("is asked for where the broker insists on TLS and the address does not", async () => {
    const url = `nats://127.0.0.1:${secure.port}`;
    expect((await status(url)).stderr).toContain("NO_TLS");
    expect((await status(url, { SSL_CERT_FILE: file("ca.pem") })).stderr).toContain("NO_HOST");
  });

  test("must name the address that was given, be it a number", async () => {
    const named = await startTestBroker({ extraConfig: tlsBlock("named") });
    onTestFinished(() => named.remove());
    const trust = { SSL_CERT_FILE: file("ca.pem") };
    const { stderr } = await status(`tls://127.0.0.1:${named.port}`, trust);
    expect(stderr).toMatch(/NO_TLS: .*127\.0\.0\.1/);
    // Its authority is known: another --tlsca would not help.
    expect(stderr).not.toContain("--tlsca");
  });

  test.skipIf(!LOCALHOST_IS_KNOWN)("is accepted under the name that it has", async () => {
    const named = await startTestBroker({ extraConfig: tlsBlock("named") });
    onTestFinished(() => named.remove());
    const trust = { SSL_CERT_FILE: file("ca.pem") };
    expect((await status(`tls://localhost:${named.port}`, trust)).stderr).toContain("NO_HOST");
  });
});
