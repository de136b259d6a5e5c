// Proves that what a trainer publishes past its client, on any subject it may use, changes nothing
// but its own: malformed, damaged and foreign messages, reply subjects that are not its own, headers
// that mean something to the broker. The host keeps serving, and answers nowhere else.
import {
  connect,
  headers,
  type Msg,
  type MsgHdrs,
  type NatsConnection,
} from "@nats-io/transport-node";
import { afterAll, beforeAll, beforeEach, describe, expect, test } from "vitest";
import type { Client } from "../../../src/client/index.ts";
import {
  bytesOf,
  decodeMessage,
  draftRecord,
  encodeMessage,
  encodePullRequest,
  type Fields,
  JobSubjects,
  parseAnswers,
  sealMessage,
  throwIfError,
} from "../../../src/protocol/index.ts";
import { type TestHost, TestJob } from "../../support/host.ts";
import { HANG_MS } from "../../support/limits.ts";
import { control } from "./control.ts";

const subjects = new JobSubjects("j");
const INBOX = subjects.inbox("raw");
const LOG = subjects.log(0, "raw", "push", "w", 0);

let job: TestJob;
let host: TestHost;
let client: Client;
let raw: NatsConnection;
let n = 0;
/** What arrives where a host has no business to write. */
const elsewhere: string[] = [];

beforeAll(async () => {
  job = await TestJob.start({ shards: 1 });
  host = await job.host();
  client = await job.trainer("good");
  await client.beginInit();
  await client.initParam("w", new Float32Array(4), { learningRate: 1 });
  await client.finishInit();
  raw = await connect({ servers: job.broker.url, inboxPrefix: INBOX });
  for (const subject of ["_INBOX_j.victim.>", "$KV.PS_j.evil", "ps.evil.>"]) {
    raw.subscribe(subject, { callback: (_error, message) => void elsewhere.push(message.subject) });
  }
  await raw.flush();
});

afterAll(async () => {
  await raw.close();
  await job.remove();
});

/** After each case the parameter has the value it had, and one update still counts once. */
let before: Float32Array;
beforeEach(async () => {
  before = (await client.pullFull("w")).data as Float32Array;
  return async () => {
    expect((await client.pullFull("w")).data).toEqual(before);
    await client.sendGrads({ w: new Float32Array(4).fill(-1) });
    expect((await client.pullFull("w")).data).toEqual(before.map((value) => value + 1));
    expect(elsewhere).toEqual([]);
    expect(host.lines.filter(({ type }) => type !== "serving" && type !== "started")).toEqual([]);
  };
});

/** A valid push of the raw trainer. */
function record(changes: Fields = {}, values = new Float32Array(4).fill(-1_000)): Uint8Array {
  const data = bytesOf(values);
  n += 1;
  const draft = draftRecord(
    {
      verb: "push",
      session: 1_000,
      n,
      done: n - 1,
      reply: `${INBOX}.applied`,
      epoch: 1,
      dtype: "float32",
      norm: 2_000,
      operation: { op: "mix", alpha: 1, beta: 1 },
      ...changes,
    },
    data.length,
  );
  draft.data.set(data);
  return sealMessage(draft);
}

/** Columns of a message: each with zeros up to a multiple of 8 bytes. */
function columnsOf(...columns: readonly number[][]): Uint8Array {
  const padded = columns.flatMap((column) => (column.length % 2 === 0 ? column : [...column, 0]));
  return bytesOf(Uint32Array.from(padded));
}

/** What the broker answers to a record. */
async function store(subject: string, bytes: Uint8Array, header?: MsgHdrs): Promise<unknown> {
  const options = { timeout: HANG_MS, ...(header === undefined ? {} : { headers: header }) };
  const { data } = await raw.request(subject, bytes, options);
  return JSON.parse(new TextDecoder().decode(data));
}

/** The code with which the fold rejects a record. */
async function rejection(bytes: Uint8Array, subject = LOG): Promise<string | undefined> {
  const answered = new Promise<Msg>((resolve) => {
    raw.subscribe(`${INBOX}.applied`, { max: 1, callback: (_error, message) => resolve(message) });
  });
  raw.publish(subject, bytes);
  return parseAnswers(decodeMessage((await answered).data)).outcomes[0]?.code;
}

/** The code of the error in the reply to a request. */
async function refusal(subject: string, bytes: Uint8Array): Promise<string> {
  const { data } = await raw.request(subject, bytes, { timeout: HANG_MS });
  try {
    throwIfError(decodeMessage(data).fields);
    return "";
  } catch (error) {
    return (error as { code: string }).code;
  }
}

describe("a journal record", () => {
  test("that is empty, noise, cut short or has a changed bit changes nothing", async () => {
    const whole = record();
    await store(LOG, new Uint8Array(0));
    await store(
      LOG,
      Uint8Array.from({ length: 300 }, (_, i) => (i * 31) % 256),
    );
    for (let length = 1; length < whole.length; length += 7) {
      await store(LOG, whole.subarray(0, length));
    }
    for (let bit = 0; bit < whole.length * 8; bit += 11) {
      const hurt = whole.slice();
      hurt[bit >> 3] = (hurt[bit >> 3] ?? 0) ^ (1 << (bit & 7));
      await store(LOG, hurt);
    }
    expect(await control(job, "hosts", {})).toMatchObject({ shards: [{ state: "serving" }] });
  });

  test("of another protocol version, verb, block, shard or epoch changes nothing", async () => {
    const other = record();
    const version = Buffer.from(other).indexOf(Uint8Array.of(0xa1, 0x76, 0x01)) + 2;
    other[version] = 2;
    await store(LOG, sealMessage({ bytes: other, data: other }));
    const base = "ps.j.log.0.trainer.raw";
    const places = ["explode.w.0", "push.w.x", "push.w.-1", "push.w.00", "push", "push.=zz.0"];
    for (const place of places) await store(`${base}.${place}`, record());
    await store("ps.j.log.0.host.explode", record());
    await store("ps.j.log.0.host.rules", encodeMessage({ rules: "new" }));
    await store("ps.j.log.0", record()).catch(() => undefined);
    expect(await rejection(record(), subjects.log(0, "raw", "push", "w", 9))).toBe(
      "NOT_INITIALIZED",
    );
    expect(await rejection(record(), subjects.log(0, "raw", "push", "v", 0))).toBe(
      "NOT_INITIALIZED",
    );
    expect(await rejection(record({ epoch: 2 }))).toBe("STALE_EPOCH");
    expect(await rejection(record({ dtype: "float64" }))).toBe("BAD_DTYPE");
    expect(await rejection(record({}, new Float32Array(3)))).toBe("BAD_LENGTH");
    expect(await rejection(record({}, Float32Array.of(0, 0, 0, Number.NaN)))).toBe("NON_FINITE");
    expect(await rejection(record({ norm: Number.POSITIVE_INFINITY }))).toBe("NON_FINITE");
    expect(await rejection(record({ n: n + 5_000, done: 0 }))).toBe("WINDOW");
  });

  test("that wants its answer elsewhere is rejected, and answered nowhere", async () => {
    for (const reply of ["_INBOX_j.victim.applied", "$KV.PS_j.evil", "ps.evil.x", `${INBOX}.>`]) {
      await store(LOG, record({ reply }));
    }
    expect(await rejection(record({ epoch: 2 }))).toBe("STALE_EPOCH");
  });

  test("with a header that means something to the broker is refused, or is a record like any", async () => {
    for (const [name, value] of [
      ["Nats-Rollup", "all"],
      ["Nats-Rollup", "sub"],
      ["Nats-TTL", "1s"],
      ["Nats-Expected-Last-Sequence", "1"],
      ["Nats-Expected-Stream", "other"],
      ["Nats-Incr", "+1"],
      ["Nats-Schedule", "@every 1s"],
    ] as const) {
      const header = headers();
      header.set(name, value);
      expect(await store(LOG, record(), header), name).toHaveProperty("error");
    }
    // What looks like a status of a consumer is delivered as the record it is.
    for (const code of [100, 404, 408, 409, 503]) {
      await store(LOG, record({ epoch: 2 }), headers(code, "Consumer Deleted"));
    }
  });
});

describe("a request", () => {
  const pull = subjects.pull("w", 0, "raw");
  const question = encodePullRequest({ epoch: 1, generation: 1, seq: 0, waitMs: 100 });

  test("that is malformed gets an error that says so", async () => {
    const cases: [Uint8Array, string][] = [
      [new Uint8Array(0), "BAD_MESSAGE"],
      [question.subarray(0, 20), "BAD_CHECKSUM"],
      [encodeMessage({ epoch: "one" }), "BAD_MESSAGE"],
      [encodePullRequest({ epoch: 9, generation: 1, seq: 0, waitMs: 0 }), "STALE_EPOCH"],
      // Of a journal that may be made yet; beyond the end of this one it would be a loss.
      [encodePullRequest({ epoch: 1, generation: 2, seq: 1, waitMs: 0 }), "TIMEOUT"],
    ];
    for (const [bytes, code] of cases) expect(await refusal(pull, bytes)).toBe(code);
    expect(await refusal("ps.j.lifecycle.raw.explode", encodeMessage({}))).toBe("BAD_MESSAGE");
    expect(await refusal("ps.j.lifecycle.raw.join", new Uint8Array(9))).toBe("BAD_MESSAGE");
    expect(await refusal("ps.j.lifecycle.raw.renew", encodeMessage({}))).toBe("BAD_MESSAGE");
    expect(await refusal("ps.j.control.raw.explode", encodeMessage({}))).toBe("BAD_MESSAGE");
    expect(await refusal(subjects.outcome(0, "raw"), encodeMessage({}))).toBe("BAD_MESSAGE");
  });

  test("for many blocks that is malformed, or is not for this shard, gets an error that says so", async () => {
    const head = { generation: 1, seq: 0, waitMs: 100 };
    const one = columnsOf([1]);
    const cases: [Fields, Uint8Array | undefined, string][] = [
      [{}, one, "BAD_MESSAGE"],
      [{ ...head, entries: 0 }, undefined, "EMPTY"],
      [{ ...head, entries: 2 }, columnsOf([1, 9]), "STALE_EPOCH"],
      [{ ...head, entries: 1 }, columnsOf([0]), "STALE_EPOCH"],
      [{ ...head, entries: 1 }, undefined, "BAD_LENGTH"],
      [{ ...head, entries: 1, part: [1] }, columnsOf([1], [2], [0]), "BAD_LENGTH"],
      [{ ...head, entries: 1, part: [2] }, columnsOf([1], [2], [0, 0]), "BAD_INDEX"],
      [{ ...head, entries: 1, from: 1 }, one, "BAD_MESSAGE"],
      [{ ...head, entries: 5_000 }, one, "TOO_LARGE"],
      [{ ...head, generation: 2, seq: 1, waitMs: 0, entries: 1 }, one, "TIMEOUT"],
    ];
    const subject = subjects.read(0, "raw");
    for (const [fields, data, code] of cases) {
      expect(await refusal(subject, encodeMessage(fields, data))).toBe(code);
    }
    expect(await refusal(subject, new Uint8Array(0))).toBe("BAD_MESSAGE");
    expect(await refusal(subject, encodeMessage({ ...head, entries: 1 }, one))).toBe("");
  });

  test("with a configuration that nests without end is refused as any, twenty times", async () => {
    const { data } = await raw.request(
      subjects.lifecycle("raw", "join"),
      encodeMessage({ token: "raw" }),
      { timeout: HANG_MS },
    );
    const { session } = decodeMessage(data).fields;
    for (let round = 0; round < 5; round++) {
      for (const level of ["[", "{", "- ", "? "]) {
        const config = level.repeat(1_000);
        const parameter = { name: "deep", dtype: "float32", shape: [1], config };
        const subject = subjects.lifecycle("raw", "create");
        expect(await refusal(subject, encodeMessage({ session, parameter }))).toBe("BAD_CONFIG");
      }
    }
  });

  test("that wants its answer elsewhere, or is only for hosts, gets none", async () => {
    const replies = ["_INBOX_j.victim.reply.1", "$KV.PS_j.evil", "ps.evil.x", `${INBOX}x.1`];
    for (const subject of [
      pull,
      subjects.outcome(0, "raw"),
      subjects.read(0, "raw"),
      subjects.lifecycle("raw", "status"),
      "ps.j.control.raw.hosts",
      "ps.j.block.w.0.=zz.pull",
      "ps.j.lifecycle.=zz.status",
    ]) {
      for (const reply of replies) raw.publish(subject, question, { reply });
    }
    const answers: string[] = [];
    raw.subscribe(`${INBOX}.host`, { callback: () => void answers.push("answered") });
    for (const verb of ["snapshot", "status", "check", "pull"] as const) {
      raw.publish(subjects.owner(0, "raw", verb), encodeMessage({}), { reply: `${INBOX}.host` });
    }
    expect(await refusal(pull, question)).toBe("");
    expect(await refusal("ps.j.lifecycle.raw.status", encodeMessage({}))).toBe("");
    expect(answers).toEqual([]);
  });
});
