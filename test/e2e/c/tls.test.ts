// Proves that an address with tls:// never makes the C library send anything to a broker without TLS: a
// stand-in for a broker keeps every byte that it gets, at the first connection, at a reconnect, and at
// an address that another broker has named; that certificates are trusted as documented, on a real
// broker with TLS; and that no part of a password is printed.
import { mkdtemp, readFile, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { connect } from "@nats-io/transport-node";
import { afterAll, beforeAll, describe, expect, onTestFinished, test, vi } from "vitest";
import type { RunningProgram } from "../../c/running-program.ts";
import { startProgram } from "../../c/test-job.ts";
import { BuiltLibrary, SANITIZED } from "../../c/toolchain.ts";
import { startTestBroker, type TestBroker } from "../../support/broker.ts";
import { LOCALHOST_IS_KNOWN, makeCertificates } from "../../support/certificates.ts";
import {
  type FakeBroker,
  type FakeBrokerOptions,
  startFakeBroker,
} from "../../support/fake-broker.ts";
import { HANG_MS } from "../../support/limits.ts";

const WAIT = { timeout: HANG_MS, interval: 20 };

let library: BuiltLibrary;
let probe: string;
let home: string;
let secure: TestBroker;
const file = (name: string): string => join(home, name);

beforeAll(async () => {
  home = await mkdtemp(join(tmpdir(), "pserver-tls-c-"));
  await makeCertificates(home);
  secure = await startTestBroker({ extraConfig: tlsBlock("server") });
  library = await BuiltLibrary.build(SANITIZED);
  probe = await library.program("probe");
});

afterAll(async () => {
  await library?.remove();
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

/** As much of a broker with TLS as lets a client connect and ask to join, in vain. */
async function fakeWithTls(options: FakeBrokerOptions = {}): Promise<FakeBroker> {
  const [key, cert] = await Promise.all(
    ["server.key", "server.pem"].map((name) => readFile(file(name), "utf8")),
  );
  return await startFakeBroker({ ...options, tls: { key: key ?? "", cert: cert ?? "" } });
}

type Environment = Readonly<Record<string, string>>;

function start(url: string, environment: Environment = {}, connectMs = HANG_MS): RunningProgram {
  return startProgram(probe, [url, "j", "t", `${HANG_MS}`, `${connectMs}`], environment);
}

/** What came of connecting. */
const result = (url: string, environment?: Environment, connectMs?: number): Promise<string> =>
  start(url, environment, connectMs).line(0);

/** Waits until the broker has let a client in, which asks to join. */
async function expectLetIn(url: string, environment: Environment): Promise<void> {
  const connection = await connect({ servers: url, tls: { caFile: file("ca.pem") } });
  onTestFinished(() => connection.close());
  const joins = connection.subscribe("ps.j.lifecycle.t.join", { max: 1 });
  await connection.flush();
  const program = start(url, environment);
  for await (const _ of joins) program.kill();
}

const trust = (): Environment => ({ SSL_CERT_FILE: file("ca.pem") });

describe("a broker without TLS gets nothing from an address with tls://", () => {
  test.each(["tls", "TLS"])("%s:// with a password", async (scheme) => {
    const plain = await fake();
    const url = `${scheme}://alice:pass-word@127.0.0.1:${plain.port}`;
    expect(await result(url)).toMatch(/^NO_TLS .*127\.0\.0\.1:\d+ offers no TLS/);
    expect([plain.dialled, plain.received]).toEqual([1, ""]);
  });

  test("nor from one that brings a file of an authority", async () => {
    const plain = await fake();
    const url = `nats://alice:pass-word@127.0.0.1:${plain.port}`;
    expect(await result(url, { NATS_CA: file("ca.pem") })).toMatch(/^NO_TLS /);
    expect(plain.received).toBe("");
  });

  test("where a broker with TLS was before", async () => {
    const first = await fakeWithTls();
    const program = start(`tls://alice:pass-word@127.0.0.1:${first.port}`, trust());
    await vi.waitFor(() => expect(first.received).toContain("pass-word"), WAIT);
    await vi.waitFor(() => expect(first.received).toContain("join"), WAIT);
    await first.close();
    const second = await fake({ port: first.port });
    await vi.waitFor(() => expect(second.dialled).toBeGreaterThan(1), WAIT);
    expect(second.received).toBe("");
    program.kill();
  });

  test("where a broker with TLS has named it as another of its cluster", async () => {
    const plain = await fake();
    const info = { connect_urls: [`127.0.0.1:${plain.port}`] };
    const first = await fakeWithTls({ info });
    const program = start(`tls://alice:pass-word@127.0.0.1:${first.port}`, trust());
    await vi.waitFor(() => expect(first.received).toContain("join"), WAIT);
    await first.close();
    await vi.waitFor(() => expect(plain.dialled).toBeGreaterThan(0), WAIT);
    expect(plain.received).toBe("");
    program.kill();
  });
});

describe("a certificate", () => {
  test("of an unknown authority is refused", async () => {
    for (const environment of [{}, { NATS_CA: file("other-ca.pem") }]) {
      const text = await result(`tls://127.0.0.1:${secure.port}`, environment);
      expect(text).toMatch(/^NO_TLS the certificate of the broker at .* is refused: .*issuer/);
    }
  });

  test.each(["SSL_CERT_FILE", "NATS_CA"])("of an authority in %s is trusted", async (name) => {
    await expectLetIn(`tls://127.0.0.1:${secure.port}`, { [name]: file("ca.pem") });
  });

  test("is checked where the broker insists on TLS and the address does not", async () => {
    const url = `nats://127.0.0.1:${secure.port}`;
    expect(await result(url)).toMatch(/^NO_TLS the certificate/);
    await expectLetIn(url, trust());
  });

  test("must name the address that was given, be it a number", async () => {
    const named = await startTestBroker({ extraConfig: tlsBlock("named") });
    onTestFinished(() => named.remove());
    const several = `tls://127.0.0.1:${named.port},tls://127.0.0.2:${named.port}`;
    for (const url of [`tls://127.0.0.1:${named.port}`, several]) {
      expect(await result(url, trust())).toMatch(/^NO_TLS the certificate .*mismatch/i);
    }
  });

  test.skipIf(!LOCALHOST_IS_KNOWN)("is accepted under the name that it has", async () => {
    const named = await startTestBroker({ extraConfig: tlsBlock("named") });
    onTestFinished(() => named.remove());
    for (const { port } of [named, secure]) await expectLetIn(`tls://localhost:${port}`, trust());
  });
});

describe("no part of a password is printed", () => {
  test.each([
    ["nats://alice:pass/word@127.0.0.1:1", "BAD_VALUE"],
    ["nats://alice:pass,word@127.0.0.1:1", "BAD_VALUE"],
    ["nats://alice:1234,word@127.0.0.1:1", "BAD_VALUE"],
    ["nats://alice:pass%2Fword@127.0.0.1:1", "NO_BROKER"],
    ["nats://pass-word@127.0.0.1:1,nats://alice:word@127.0.0.1:2", "NO_BROKER"],
  ])("%s", async (url, code) => {
    const text = await result(url, {}, 300);
    expect(text).toMatch(new RegExp(`^${code} `));
    expect(text).not.toMatch(/pass-|pass%|pass,|pass\/|1234|word@|alice/);
  });

  test("which is sent as it was meant", async () => {
    const plain = await fake();
    const program = start(`nats://alice:p%2Fq%40%2C@127.0.0.1:${plain.port}`);
    await vi.waitFor(() => expect(plain.received).toContain('"pass":"p/q@,"'), WAIT);
    program.kill();
  });
});
