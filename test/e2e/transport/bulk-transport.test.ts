// Proves that the transport with large buffers delivers the same bytes as the stock one, whatever
// the sizes of messages, that views of old messages stay unchanged while new ones arrive, that lent
// ones are unchanged during their callback and their buffers go back, and that reconnects and TLS
// work as without it.
import { execFileSync, spawnSync } from "node:child_process";
import { createHash, randomBytes } from "node:crypto";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, test, vi } from "vitest";
import { BufferPool } from "../../../src/transport/buffers.ts";
import { connectForBulk } from "../../../src/transport/bulk-transport.ts";
import { startTestBroker, type TestBroker } from "../../support/broker.ts";
import { HANG_MS } from "../../support/limits.ts";

/** Sizes around those of socket reads, slabs and the parser's own buffers. */
const SIZES = [
  0,
  1,
  7,
  1_023,
  65_535,
  65_536,
  65_537,
  1 << 20,
  (4 << 20) - 1,
  (4 << 20) + 1,
  7 << 20,
];

const digest = (data: Uint8Array): string => createHash("sha256").update(data).digest("hex");

async function echo(options: Parameters<typeof connectForBulk>[0]): Promise<void> {
  // Made before: a broker cuts off who does not answer its pings meanwhile, and what was sent is lost.
  const sent = SIZES.flatMap((size) => [randomBytes(size), randomBytes(11)]);
  const connection = await connectForBulk(options);
  try {
    const received: Uint8Array[] = [];
    connection.subscribe("echo", { callback: (_error, { data }) => void received.push(data) });
    for (const data of sent) connection.publish("echo", data);
    await vi.waitFor(() => expect(received).toHaveLength(sent.length), { timeout: HANG_MS });
    // Only now: a buffer that is written to again would have changed the first messages.
    expect(received.map(digest)).toEqual(sent.map(digest));
  } finally {
    await connection.close();
  }
}

/** Knows how many of its buffers are out. */
class CountingPool extends BufferPool {
  taken = 0;
  back = 0;

  override take(size: number): Buffer {
    this.taken++;
    return super.take(size);
  }

  override giveBack(buffer: Uint8Array): void {
    this.back++;
    super.giveBack(buffer);
  }
}

describe("plain", () => {
  let broker: TestBroker;

  beforeAll(async () => {
    broker = await startTestBroker();
  });

  afterAll(async () => {
    await broker.remove();
  });

  test("delivers every size unchanged", async () => {
    await echo({ servers: broker.url });
  });

  test("reconnects", async () => {
    const connection = await connectForBulk({
      servers: broker.url,
      maxReconnectAttempts: -1,
      reconnectTimeWait: 20,
    });
    const received: string[] = [];
    connection.subscribe("again", {
      callback: (_error, message) => void received.push(message.string()),
    });
    await broker.kill();
    await broker.start();
    const heard = (): void => {
      connection.publish("again", "here");
      expect(received).toContain("here");
    };
    await vi.waitFor(heard, { timeout: HANG_MS });
    await connection.close();
  });

  test("delivers what it lends unchanged, before and after a reconnect", async () => {
    // Many of the sizes that share a buffer, among others. Made before, as above.
    const sent = [...SIZES, ...SIZES].flatMap((size) =>
      [size, 60_000, 64 << 10, 100, 90_000, 64 << 10].map((one) => randomBytes(one)),
    );
    const pool = new CountingPool();
    const connection = await connectForBulk({
      servers: broker.url,
      maxReconnectAttempts: -1,
      reconnectTimeWait: 20,
      lending: { prefix: "lent.", pool },
    });
    const received: string[] = [];
    connection.subscribe("lent.*", {
      callback: (_error, { data }) => void received.push(digest(data)),
    });
    const deliver = async (): Promise<void> => {
      received.length = 0;
      for (const data of sent) connection.publish("lent.message", data);
      await vi.waitFor(() => expect(received).toHaveLength(sent.length), { timeout: HANG_MS });
      expect(received).toEqual(sent.map(digest));
      expect(pool.taken).toBeGreaterThan(0);
      await vi.waitFor(() => expect(pool.back).toBe(pool.taken), { timeout: HANG_MS });
    };
    await deliver();
    await broker.kill();
    await broker.start();
    const heard = async (): Promise<void> => {
      connection.publish("lent.hello");
      await connection.flush();
      expect(received.length).toBeGreaterThan(sent.length);
    };
    await vi.waitFor(heard, { timeout: HANG_MS });
    await deliver();
    await connection.close();
  });

  test("rejects when nobody listens on the port", async () => {
    await expect(connectForBulk({ servers: "127.0.0.1:9" })).rejects.toThrow(/refused/);
  });
});

describe.skipIf(spawnSync("openssl", ["version"]).status !== 0)("TLS", () => {
  let home: string;
  let broker: TestBroker;

  beforeAll(async () => {
    home = mkdtempSync(join(tmpdir(), "pserver-tls-"));
    execFileSync(
      "openssl",
      [
        ...["req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes"],
        ...["-keyout", join(home, "key.pem"), "-out", join(home, "cert.pem"), "-days", "2"],
        ...["-subj", "/CN=localhost", "-addext", "subjectAltName=IP:127.0.0.1,DNS:localhost"],
      ],
      { stdio: "ignore" },
    );
    broker = await startTestBroker({
      extraConfig: `tls { cert_file: "${join(home, "cert.pem")}", key_file: "${join(home, "key.pem")}" }`,
    });
  });

  afterAll(async () => {
    await broker?.remove();
    rmSync(home, { recursive: true, force: true });
  });

  test("is spoken when the broker requires it", async () => {
    await echo({ servers: `127.0.0.1:${broker.port}`, tls: { caFile: join(home, "cert.pem") } });
  });

  test("still refuses a certificate that nobody vouches for", async () => {
    const connecting = connectForBulk({ servers: `127.0.0.1:${broker.port}` });
    await expect(connecting).rejects.toThrow(/certificate/);
  });
});
