// Proves on a real broker with the users of `pserver auth init` that they suffice for everything a job does; that what
// is denied is told; that requests whose answers are aimed at what only hosts may write leave every stream and bucket as
// it was; and that certificates are checked by client and host. What each user may do is tried by permissions.test.ts.
import { mkdir, mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { jetstreamManager } from "@nats-io/jetstream";
import { type NatsConnection, PermissionViolationError } from "@nats-io/transport-node";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import type { HostOptions } from "../../src/actors/host/host.ts";
import {
  decodeMessage,
  encodeBatchRead,
  encodeMessage,
  encodeStepRequest,
  hashName,
  JobSubjects,
  parseReadChunk,
  parseStepReply,
  throwIfError,
} from "../../src/protocol/index.ts";
import { type ConnectionSettings, openConnection } from "../../src/transport/connection.ts";
import { run as runCommand } from "../cli/spawn-command.ts";
import { TestAuth } from "../support/auth.ts";
import { makeCertificates } from "../support/certificates.ts";
import { TestJob } from "../support/host.ts";
import { HANG_MS, LASTING_LEASE_MS } from "../support/limits.ts";

const JOB = "mnist";
const SUBJECTS = new JobSubjects(JOB);
const SHARDS = 2;

/** How long a test waits for what the broker says on another connection. */
const WAIT = { timeout: HANG_MS, interval: 20 };

let home: string;
let auth: TestAuth;
let job: TestJob;
const raw: NatsConnection[] = [];

beforeAll(async () => {
  home = await mkdtemp(join(tmpdir(), "pserver-security-"));
  await mkdir(join(home, "models"));
  // An authority that has signed nothing.
  await makeCertificates(home);
  auth = await TestAuth.make(JOB, ["trainer-1", "trainer-2"]);
  job = await TestJob.start({}, { authFile: auth.directory.configFile });
  await startHost("h1");
});

afterAll(async () => {
  await Promise.all(raw.map((connection) => connection.close()));
  await job.remove();
  await auth.remove();
  await rm(home, { recursive: true, force: true });
});

/** How a user of a host connects; `caFile`: the authority that it trusts. */
const as = (user: string, caFile = auth.directory.authorityFile): ConnectionSettings => ({
  ...auth.as(user, [job.broker.url]),
  tls: { caFile },
});

const otherAuthority = (): string => join(home, "other-ca.pem");

const hostOptions = (id: string, user: string, answers: string): Partial<HostOptions> => ({
  ...{ job: JOB, id, shards: SHARDS, modelDirectory: join(home, "models") },
  // Trainers enter, wait for what hosts tell, and send clocks, yet hold nobody up.
  synchronization: { mode: "ssp", trainers: 1, staleness: 1_000 },
  // A host that loses a lease takes its shard over again, and so writes where a test watches for writes.
  leaseMs: LASTING_LEASE_MS,
  connection: as(user),
  answerConnection: as(answers),
  acrossAccounts: true,
});

const startHost = (id: string, options: Partial<HostOptions> = {}): ReturnType<TestJob["host"]> =>
  job.host({ ...hostOptions(id, "host", "answers"), ...options });

const trainer = (id: string, user = id): ReturnType<TestJob["trainer"]> =>
  job.trainer(id, { job: JOB, ...auth.trainer(user) });

/** A connection that does what it is told, without the client's good manners. */
async function rawUser(user: string, inboxPrefix: string): Promise<NatsConnection> {
  const connection = await openConnection(as(user), { name: "raw", inboxPrefix });
  raw.push(connection);
  return connection;
}

/** What the broker says that it refuses. */
const REFUSAL = /Violation for (Publish(?: with Reply)?|Subscription) (?:to|of) "([^"]*)"/;

/** What the broker refuses on a connection, as `publish SUBJECT` or `subscription SUBJECT`. */
function refusals(connection: NatsConnection): Set<string> {
  const refused = new Set<string>();
  const watch = async (): Promise<void> => {
    for await (const status of connection.status()) {
      if (status.type !== "error" || !(status.error instanceof PermissionViolationError)) continue;
      const [, what = "", subject] = REFUSAL.exec(status.error.message) ?? [];
      refused.add(`${what.toLowerCase()} ${subject}`);
    }
  };
  void watch();
  return refused;
}

/** Has trainer-1 read two blocks of 1 MiB of "w" on one shard; whether more was to follow each piece. */
async function piecesOf(connection: NatsConnection): Promise<boolean[]> {
  const reply = `${SUBJECTS.inbox("trainer-1")}.raw.pieces`;
  const pieces: boolean[] = [];
  const arrived = new Promise<void>((resolve) => {
    connection.subscribe(reply, {
      callback: (_error, { data }) => {
        const { more } = parseReadChunk(decodeMessage(data));
        pieces.push(more);
        if (!more) resolve();
      },
    });
  });
  // The job's first parameter: its blocks have the numbers from 1 on.
  const numbers = Uint32Array.of(1, 1 + SHARDS);
  const wanted = { numbers, parts: undefined, have: undefined };
  const request = encodeBatchRead({ generation: 1, seq: 0, waitMs: 5_000 }, wanted);
  connection.publish(SUBJECTS.read(hashName("w") % SHARDS, "trainer-1"), request, { reply });
  await arrived;
  return pieces;
}

test("the users suffice for a job's whole life", async () => {
  const first = await trainer("trainer-1");
  expect(await first.beginInit()).toBe(true);
  // Large enough for blocks on every shard.
  await first.initParam("w", new Float32Array(2_000_000), { learningRate: 1 });
  await first.finishInit();
  const second = await trainer("trainer-2");
  expect(await second.beginInit()).toBe(false);
  await Promise.all(
    [first, second].map((ps) => ps.sendGrads({ w: new Float32Array(2_000_000).fill(-1) })),
  );
  const { data } = await second.pullFull("w");
  expect(new Set<unknown>(data)).toEqual(new Set([2]));
  await second.createIfNotAlreadyCreated("own", Float32Array.of(1));
  await second.pushFull("own", Float32Array.of(3), 0.5, 0.5);
  expect((await first.pullFull("own")).data).toEqual(Float32Array.of(2));
  // All of it had to keep step to get here: to enter, to ask how far shards are, to send clocks.
  const connection = await rawUser("trainer-1", `${SUBJECTS.inbox("trainer-1")}.raw`);
  const wanted = encodeStepRequest({ generation: 1, seq: 0, revision: 2, step: 1, waitMs: 5_000 });
  const subject = SUBJECTS.step(0, "trainer-1");
  const { data: reply } = await connection.request(subject, wanted, { timeout: HANG_MS });
  expect(parseStepReply(decodeMessage(reply))).toMatchObject({ revision: 2, step: 1 });
  expect(await piecesOf(connection)).toEqual([true, false]);
  const saved = await first.saveModel("m.safetensors");
  expect(saved).toMatchObject({ format: "safetensors" });
  // Another host takes over with the same two users, and purges and deletes what it need not keep.
  await job.hosts[0]?.stop();
  await startHost("h2", { snapshotBytes: 1_000_000, retainBytes: 1 });
  for (let i = 0; i < 4; i++) await first.sendGrads({ w: new Float32Array(2_000_000).fill(-1) });
  expect(new Set<unknown>((await first.pullFull("w")).data)).toEqual(new Set([6]));
  const control = await rawUser("host", `${SUBJECTS.hostInbox("test")}`);
  const manager = await jetstreamManager(control);
  await expect
    .poll(async () => {
      const stream = SUBJECTS.journalStream(0, 1);
      return (await manager.streams.info(stream)).state.first_seq;
    }, WAIT)
    .toBeGreaterThan(1);
  const told = job.hosts.flatMap(({ lines }) => lines);
  expect(told.filter(({ type }) => /failed|error/.test(type))).toEqual([]);
});

test("an observer reads and cannot write", async () => {
  const connection = await rawUser("observer", SUBJECTS.inbox("observer"));
  const refused = refusals(connection);
  const ask = async (subject: string): Promise<number> =>
    (await connection.request(subject, encodeMessage({}), { timeout: HANG_MS })).data.length;
  expect(await ask(SUBJECTS.lifecycle("observer", "status"))).toBeGreaterThan(10);
  expect(await ask(SUBJECTS.control("observer", "hosts"))).toBeGreaterThan(10);
  expect(await ask(SUBJECTS.control("observer", "versions"))).toBeGreaterThan(10);
  expect(await ask(SUBJECTS.pull("own", 0, "observer"))).toBeGreaterThan(10);
  const forbidden = [
    SUBJECTS.log(0, "observer", "push", "w", 0),
    SUBJECTS.lifecycle("observer", "join"),
    SUBJECTS.control("observer", "save"),
  ];
  for (const subject of forbidden) connection.publish(subject);
  await expect
    .poll(() => [...refused], WAIT)
    .toEqual(forbidden.map((subject) => `publish ${subject}`));
});

test.each([
  ["host", [], ["JetStream", "file storage", "host permissions (store)"]],
  ["answers", [], ["host permissions (answers)"]],
  ["observer", ["--trainer", "observer"], ["trainer permissions", "hosts", "shards"]],
  ["trainer-1", ["--trainer", "trainer-1"], ["trainer permissions", "hosts", "shards"]],
])("the doctor works with %s, and skips what that user may not", async (user, args, checked) => {
  const { code, stdout, stderr } = await runCommand(
    ["doctor", "--url", job.broker.url, "--job", JOB, "--json", ...args],
    { environment: auth.variables(user) },
  );
  const { checks } = JSON.parse(stdout || stderr);
  const bad = checks.filter(({ status }: { status: string }) => /warn|fail/.test(status));
  expect([code, bad]).toEqual([0, []]);
  const done = checks.filter(({ status }: { status: string }) => status === "ok");
  expect(done.map(({ name }: { name: string }) => name)).toEqual(expect.arrayContaining(checked));
  expect(checks.length).toBeGreaterThan(done.length);
});

describe("denied", () => {
  test("is told by the client, with what was denied", async () => {
    await expect(trainer("trainer-2", "trainer-1")).rejects.toMatchObject({
      code: "DENIED",
      message: expect.stringContaining("trainer-2"),
    });
    await expect(
      job.trainer("trainer-1", { job: JOB, tlsCa: auth.directory.authorityFile }),
    ).rejects.toMatchObject({ code: "DENIED" });
    await expect(trainer("observer")).rejects.toMatchObject({
      code: "DENIED",
      message: expect.stringContaining("lifecycle.observer.join"),
    });
  });

  test("is told by a host, with what was denied", async () => {
    for (const [user, answers, subject] of [
      ["answers", "answers", "_INBOX_mnist.=host"],
      ["host", "trainer-1", "ps.mnist"],
    ] as const) {
      const host = job.spawnHost(hostOptions("denied", user, answers));
      const line = await host.line(({ error }) => error !== undefined);
      expect(line.error).toMatchObject({
        code: "DENIED",
        message: expect.stringContaining(subject),
      });
      await host.exited;
    }
  });
});

/** Replies by which a host, or the broker, would write where the asker must not. */
const AIMS = [
  `$KV.${SUBJECTS.bucket()}.settings`,
  `$KV.${SUBJECTS.bucket()}.job`,
  `$KV.${SUBJECTS.leaseBucket()}.shard.0`,
  SUBJECTS.log(0, "trainer-2", "push", "w", 0),
  SUBJECTS.hostLog(0, "rules"),
  SUBJECTS.manifest(0),
  `$JS.API.STREAM.PURGE.${SUBJECTS.journalStream(0, 1)}`,
  `$JS.API.STREAM.DELETE.KV_${SUBJECTS.bucket()}`,
  `${SUBJECTS.hostInbox("h2")}.x`,
  SUBJECTS.lifecycle("trainer-2", "leave"),
  SUBJECTS.control("trainer-2", "snapshot"),
];

describe("answers directed elsewhere", () => {
  test("write nothing, and the host continues", async () => {
    await using ps = await trainer("trainer-1");
    const control = await rawUser("host", SUBJECTS.hostInbox("witness"));
    const connection = await rawUser("trainer-1", SUBJECTS.inbox("trainer-1"));
    // A snapshot still under way would write after the test has looked.
    const snapshot = SUBJECTS.control("trainer-1", "snapshot");
    const made = await connection.request(snapshot, encodeMessage({}), { timeout: WAIT.timeout });
    throwIfError(decodeMessage(made.data).fields);
    const before = await storedState(control);
    const own = await ownRecords(control, "trainer-1");
    const requests = [
      SUBJECTS.pull("own", 0, "trainer-1"),
      SUBJECTS.outcome(0, "trainer-1"),
      SUBJECTS.step(0, "trainer-1"),
      SUBJECTS.lifecycle("trainer-1", "status"),
      SUBJECTS.control("trainer-1", "hosts"),
    ];
    const bytes = encodeMessage({});
    for (const reply of AIMS) {
      for (const subject of requests) connection.publish(subject, bytes, { reply });
      // The broker itself acknowledges a record wherever the sender says.
      connection.publish(SUBJECTS.log(0, "trainer-1", "push", "w", 0), bytes, { reply });
    }
    await connection.flush();
    // All were heard: the records are stored, and requests made later are answered.
    await expect
      .poll(async () => await ownRecords(control, "trainer-1"), WAIT)
      .toBe(own + AIMS.length);
    expect((await ps.pullFull("own")).data).toEqual(Float32Array.of(2));
    await ps.pushFull("own", Float32Array.of(2), 0, 1);
    expect(await storedState(control)).toEqual(before);
  });

  test("cannot pretend to come from another account", async () => {
    const connection = await rawUser("trainer-1", SUBJECTS.inbox("trainer-1"));
    const refused = refusals(connection);
    for (const reply of ["_R_.guess.guess", "_GR_.guess.guess"]) {
      connection.publish(SUBJECTS.lifecycle("trainer-1", "status"), encodeMessage({}), { reply });
    }
    await expect
      .poll(() => [...refused], WAIT)
      .toEqual(["publish with reply _R_.guess.guess", "publish with reply _GR_.guess.guess"]);
  });
});

/**
 * Every record of the job but those that its host keeps renewing, and who has written how often to the
 * journals but trainer-1.
 */
async function storedState(control: NatsConnection): Promise<unknown> {
  const manager = await jetstreamManager(control);
  const bucket = `KV_${SUBJECTS.bucket()}`;
  const { state } = await manager.streams.info(bucket, { subjects_filter: ">" });
  const records = Object.keys(state.subjects ?? {}).filter(
    (subject) => !/\.(trainer\..*|session|head\.\d+)$/.test(subject),
  );
  const values = records.sort().map(async (last_by_subj) => {
    const stored = await manager.streams.getMessage(bucket, { last_by_subj });
    return [last_by_subj, stored?.seq, stored?.string()];
  });
  const journal = await manager.streams.info(SUBJECTS.journalStream(0, 1), {
    subjects_filter: "ps.mnist.log.0.*.>",
  });
  const others = Object.entries(journal.state.subjects ?? {}).filter(
    ([subject]) => !subject.includes(".trainer-1."),
  );
  const snapshots = await manager.streams.info(SUBJECTS.snapshotStream());
  const { streams } = await manager.getAccountInfo();
  const { first_seq } = journal.state;
  return [await Promise.all(values), others, snapshots.state.last_seq, streams, first_seq];
}

async function ownRecords(control: NatsConnection, id: string): Promise<number> {
  const manager = await jetstreamManager(control);
  const { state } = await manager.streams.info(SUBJECTS.journalStream(0, 1), {
    subjects_filter: `ps.mnist.log.0.trainer.${id}.>`,
  });
  return Object.values(state.subjects ?? {}).reduce((sum, count) => sum + count, 0);
}

describe("certificates", () => {
  test("a client that trusts another authority is refused", async () => {
    const { nkey = "" } = auth.trainer("trainer-1");
    for (const trust of [{ tlsCa: otherAuthority() }, {}]) {
      await expect(job.trainer("trainer-1", { job: JOB, nkey, ...trust })).rejects.toMatchObject({
        code: "NO_TLS",
        message: expect.stringContaining("certificate"),
      });
    }
  });

  test("a host that trusts another authority is told so", async () => {
    const host = job.spawnHost({ job: JOB, id: "h3", connection: as("host", otherAuthority()) });
    const line = await host.line(({ type }) => type === "refused");
    expect(line.error).toMatchObject({
      code: "NO_TLS",
      message: expect.stringMatching(/certificate/),
    });
    await host.exited;
  });
});
