// Proves that calls survive what brokers and hosts do, and say what happened where they cannot: the
// broker dies and comes back, answers are lost, hosts are away, sessions end, the journal is full.
import { afterEach, describe, expect, test, vi } from "vitest";
import { type Client, type ConnectOptions, connect } from "../../../src/client/index.ts";
import { PserverError } from "../../../src/protocol/errors.ts";
import { atDeadline } from "../../support/at-deadline.ts";
import { startTestBroker, type TestBroker } from "../../support/broker.ts";
import { type FakeHost, startFakeHost } from "../../support/fake-host.ts";
import { freeze, thaw } from "../../support/freeze.ts";
import { HANG_MS } from "../../support/limits.ts";

const cleanUp: (() => Promise<void>)[] = [];

afterEach(async () => {
  for (const clean of cleanUp.splice(0).reverse()) await clean();
});

async function start(
  options: Partial<Parameters<typeof startFakeHost>[0]> = {},
): Promise<{ broker: TestBroker; host: FakeHost; client: Client }> {
  const broker = await startTestBroker();
  cleanUp.push(() => broker.remove());
  const host = await startFakeHost({ url: broker.url, job: "j", ...options });
  cleanUp.push(() => host.close());
  return { broker, host, client: await join(broker, { trainer: "t1" }) };
}

async function join(broker: TestBroker, options: Partial<ConnectOptions>): Promise<Client> {
  const client = await connect({ url: broker.url, job: "j", ...options });
  cleanUp.push(() => client.close({ timeoutMs: 100 }));
  return client;
}

async function initialize(client: Client, elements = 4): Promise<void> {
  await client.beginInit();
  await client.initParam("w", new Float32Array(elements), { learningRate: 1 });
  await client.finishInit();
  // From now on the client knows the parameter and need not ask for it.
  await client.pullFull("w");
}

const ones = (elements = 4): Float32Array => new Float32Array(elements).fill(-1);

describe("a broker that dies", () => {
  test("while pushing: each update is applied exactly once", async () => {
    const { broker, client } = await start();
    await initialize(client, 64 * 1024);
    const pushes: Promise<unknown>[] = [];
    const push = (count: number): void => {
      for (let i = 0; i < count; i++) pushes.push(client.sendGrads({ w: ones(64 * 1024) }));
    };
    push(100);
    await pushes[10];
    await broker.kill();
    push(50);
    await broker.start();
    push(50);
    await pushes[150];
    await broker.kill();
    await broker.start();
    await Promise.all(pushes);
    const { data } = await client.pullFull("w");
    expect(new Set<unknown>(data)).toEqual(new Set([200]));
  });

  test("and stays away: the call ends at its deadline, and says that nothing was stored", async () => {
    const { broker, client } = await start();
    await initialize(client);
    await broker.kill();
    const refused = async (): Promise<void> => {
      const error = await client.sendGrads({ w: ones() }, { timeoutMs: 300 }).catch((e) => e);
      expect(error).toMatchObject({ code: "NO_BROKER" });
      expect(error.message).toContain("nothing was applied");
    };
    await vi.waitFor(refused, { timeout: HANG_MS });
    expect(
      await atDeadline("NO_BROKER", (timeoutMs) => client.pullFull("w", { timeoutMs })),
    ).toMatchObject({ code: "NO_BROKER" });
    await broker.start();
    await client.sendGrads({ w: ones() });
  });
});

describe("a host", () => {
  test("whose answers are lost is asked for the outcome", async () => {
    const { host, client } = await start();
    await initialize(client);
    host.mute = true;
    await Promise.all([client.sendGrads({ w: ones() }), client.sendGrads({ w: ones() })]);
    expect(host.received.get("outcome")).toBeGreaterThan(0);
    expect((await client.pullFull("w")).data).toEqual(new Float32Array(4).fill(2));
  });

  test("that folds nothing leaves the outcome unknown at the deadline; the update is applied once", async () => {
    const { host, client } = await start();
    await initialize(client);
    host.stalled = true;
    await expect(client.sendGrads({ w: ones() }, { timeoutMs: 1_500 })).rejects.toMatchObject({
      code: "OUTCOME_UNKNOWN",
      details: { unknown: [{ parameter: "w", index: 0, n: 2 }], unsent: 0 },
    });
    await client.sendGrads({ w: ones() }, { ack: "stored" });
    // The read waits for the position of the update that is only stored: nothing is folded up to there
    // when its request comes.
    const before = host.received.get("pull") ?? 0;
    const reading = client.pullFull("w");
    await vi.waitUntil(() => (host.received.get("pull") ?? 0) > before, { timeout: HANG_MS });
    host.stalled = false;
    expect((await reading).data).toEqual(new Float32Array(4).fill(2));
  });

  test("that folds nothing while parameters are initialized: repeating the same values succeeds, other values fail", async () => {
    const { host, client } = await start();
    await client.beginInit();
    const values = ones(2 * 1024 * 1024);
    const others = values.map((value) => value + 1);
    const unknown = async (call: (timeoutMs: number) => Promise<unknown>): Promise<void> => {
      host.stalled = true;
      expect(await atDeadline("OUTCOME_UNKNOWN", call)).toMatchObject({ code: "OUTCOME_UNKNOWN" });
      host.stalled = false;
    };
    await unknown((timeoutMs) => client.initParam("w", values, {}, { timeoutMs }));
    await client.initParam("w", values);
    // Nothing is open any more.
    const present = { code: "ALREADY_INITIALIZED" };
    await expect(client.initParam("w", values)).rejects.toMatchObject(present);
    await unknown((timeoutMs) => client.initParam("x", values, {}, { timeoutMs }));
    await expect(client.initParam("x", others)).rejects.toMatchObject(present);
    // Which of the two is stored nobody knows.
    await expect(client.initParam("x", values)).rejects.toMatchObject(present);
    await unknown((timeoutMs) => client.createIfNotAlreadyCreated("y", values, {}, { timeoutMs }));
    const created = await client.createIfNotAlreadyCreated("y", values);
    await client.finishInit();
    const initialized = await client.pullFull("w");
    for (const { data } of [created, initialized]) {
      expect([data.length, new Set<unknown>(data)]).toEqual([values.length, new Set([-1])]);
    }
  });

  test("that is unavailable is waited for; at the deadline the error says what to do", async () => {
    const { host, client } = await start();
    await initialize(client);
    await host.deaf(true);
    const reading = client.pullFull("w");
    expect(
      await atDeadline("NO_HOST", (timeoutMs) => client.pullFull("w", { timeoutMs })),
    ).toMatchObject({ code: "NO_HOST" });
    const status = await atDeadline("NO_HOST", (timeoutMs) => client.status({ timeoutMs }));
    expect(status).toMatchObject({
      code: "NO_HOST",
      message: expect.stringMatching(/start one on this broker/),
    });
    await host.deaf(false);
    expect((await reading).data).toEqual(new Float32Array(4));
  });

  test("whose broker has no leader is asked again, also by a client that connects", async () => {
    const { broker, host, client } = await start();
    await initialize(client);
    const away = (): PserverError => new PserverError("JETSTREAM_UNAVAILABLE", "no leader");
    host.refuse.set("status", [away(), away()]);
    await client.status();
    host.refuse.set("join", [away(), away(), away()]);
    const other = await connect({ url: broker.url, job: "j", trainer: "other" });
    await other.close();
    expect(host.refuse.get("join")).toEqual([]);
    host.refuse.set("join", Array.from({ length: 10_000 }, away));
    const error = await atDeadline("JETSTREAM_UNAVAILABLE", (timeoutMs) =>
      connect({ url: broker.url, job: "j", timeoutMs }),
    );
    expect(error).toMatchObject({
      code: "JETSTREAM_UNAVAILABLE",
      message: expect.stringMatching(/connect: not finished within \d+ ms; last: no leader/),
    });
    // More than one: the last request of the attempt that ended at its deadline may still be on its way.
    const never = (): PserverError => new PserverError("NO_JETSTREAM", "not here");
    host.refuse.set("join", Array.from({ length: 100 }, never));
    const refused = connect({ url: broker.url, job: "j" });
    await expect(refused).rejects.toMatchObject({ code: "NO_JETSTREAM" });
  });

  test("that is busy or moves is asked again; other errors are the caller's", async () => {
    const { host, client } = await start();
    await initialize(client);
    host.refuse.set("pull", [new PserverError("BUSY", "busy"), new PserverError("NOT_OWNER", "x")]);
    await client.pullFull("w");
    host.refuse.set("pull", [new PserverError("JOURNAL_LOST", "records 7 to 9 are lost")]);
    await expect(client.pullFull("w")).rejects.toMatchObject({
      code: "JOURNAL_LOST",
      message: "records 7 to 9 are lost",
    });
  });

  test("that has initialized a parameter anew: reads follow, updates are refused once", async () => {
    const { host, client } = await start();
    await initialize(client);
    await host.reinitialize("w", new Float32Array(4).fill(9));
    await expect(client.sendGrads({ w: ones() })).rejects.toMatchObject({
      code: "STALE_EPOCH",
      details: { parameter: "w", block: 0, trainer: "t1" },
    });
    await client.sendGrads({ w: ones() });
    expect((await client.pullFull("w")).data).toEqual(new Float32Array(4).fill(10));
    await host.reinitialize("w", new Float32Array(4).fill(3));
    expect((await client.pullFull("w")).data).toEqual(new Float32Array(4).fill(3));
  });
});

describe("a session", () => {
  test("that a host ends by `floor` is begun anew, and the push that found out is sent again", async () => {
    const { host, client } = await start();
    await initialize(client);
    const { session } = client;
    await host.floor(session);
    await client.sendGrads({ w: ones() });
    expect(client.session).toBeGreaterThan(session);
    expect((await client.pullFull("w")).data).toEqual(new Float32Array(4).fill(1));
  });

  test("that must rejoin does so from any request", async () => {
    const { host, client } = await start();
    const { session } = client;
    host.refuse.set("begin", [new PserverError("REJOIN", "gone")]);
    expect(await client.beginInit()).toBe(true);
    expect(client.session).toBe(session + 1);
  });

  test("that is superseded is over for good", async () => {
    const { host, client } = await start({ leaseMs: 90 });
    // An answer that comes after its renewal's time is not heard: so every renewal gets one.
    const newer = new PserverError("SUPERSEDED", "newer");
    host.refuse.set("renew", new Array<PserverError>(1_000).fill(newer));
    const pending = client.getParams(["w"]);
    await expect(pending).rejects.toMatchObject({
      code: "SUPERSEDED",
      message: expect.stringContaining('"t1"'),
    });
    await expect(client.beginInit()).rejects.toMatchObject({ code: "SUPERSEDED" });
  });
});

describe("the journal", () => {
  test("that is full is an error that says so; nothing was applied", async () => {
    const { client } = await start({ shards: 1, journalBytesMax: 256 * 1024 });
    await initialize(client);
    await client.beginInit({ wait: false });
    const big = { dtype: "float32" as const, shape: [4], data: ones() };
    const errors: PserverError[] = [];
    const isFull = ({ code }: PserverError): boolean => code === "JOURNAL_FULL";
    while (!errors.some(isFull)) {
      const push = (): Promise<unknown> => client.sendGrads({ w: big }, { timeoutMs: 1_000 });
      const results = await Promise.allSettled(Array.from({ length: 200 }, push));
      for (const result of results) if (result.status === "rejected") errors.push(result.reason);
    }
    const full = errors.filter(isFull);
    for (const { message } of full) expect(message).toContain("nothing was applied");
    // Those whose last sending the broker was about to refuse when their time ended.
    const others = errors.filter((error) => !isFull(error));
    expect(others.filter(({ code }) => code !== "OUTCOME_UNKNOWN")).toEqual([]);
  });

  test("on a broker that stands still: memory is bounded, whatever is pushed", async () => {
    const { broker, client } = await start();
    const elements = 32 * 1024 * 1024;
    await initialize(client, elements);
    const gradient = ones(elements);
    const { pid } = broker.current;
    await freeze(pid);
    const before = process.memoryUsage().arrayBuffers;
    try {
      await expect(client.sendGrads({ w: gradient }, { timeoutMs: 1_500 })).rejects.toMatchObject({
        code: "OUTCOME_UNKNOWN",
      });
      // 16 MiB of messages, and nats.js's copies of those that the socket has not taken.
      expect(process.memoryUsage().arrayBuffers - before).toBeLessThan(48 * 1024 * 1024);
    } finally {
      thaw(pid);
    }
  });
});

describe("connect", () => {
  test("says where no broker answers", async () => {
    // Long enough for a busy machine to have tried once.
    const start = connect({ url: "nats://127.0.0.1:9", job: "j", timeoutMs: 5_000 });
    await expect(start).rejects.toMatchObject({
      code: "NO_BROKER",
      message: expect.stringContaining("nats://127.0.0.1:9"),
    });
  });

  test("waits for a broker and a host that are started later", async () => {
    const broker = await startTestBroker();
    cleanUp.push(() => broker.remove());
    await broker.stop();
    const connecting = connect({ url: broker.url, job: "j" });
    await broker.start();
    const host = await startFakeHost({ url: broker.url, job: "j" });
    cleanUp.push(() => host.close());
    await using client = await connecting;
    expect(client.trainer).toMatch(/-\d+-[0-9a-f]{8}$/);
    expect(client.session).toBe(1);
  });

  test("says that no host answers", async () => {
    const broker = await startTestBroker();
    cleanUp.push(() => broker.remove());
    const lonely = { url: broker.url, job: "lonely" };
    const error = await atDeadline("NO_HOST", (timeoutMs) => connect({ ...lonely, timeoutMs }));
    expect(error).toMatchObject({
      code: "NO_HOST",
      message: expect.stringContaining('"lonely"'),
    });
  });

  test("refuses a wrong name before it connects", async () => {
    await expect(connect({ job: "a.b" })).rejects.toMatchObject({ code: "BAD_NAME" });
    await expect(connect({ job: "a", trainer: "" })).rejects.toMatchObject({ code: "BAD_NAME" });
  });

  test("an abort ends it", async () => {
    const abort = AbortSignal.timeout(50);
    const connecting = connect({ url: "nats://127.0.0.1:9", job: "j", signal: abort });
    await expect(connecting).rejects.toMatchObject({ code: "ABORTED" });
  });
});
