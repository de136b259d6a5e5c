import { decodeMessage, encodeMessage, readCrc, sealMessage } from "../../src/protocol/codec.ts";
import { toConfig } from "../../src/protocol/config/index.ts";
import { encodeGroups } from "../../src/protocol/encoding/grouped.ts";
import { PserverError } from "../../src/protocol/errors.ts";
import { computeLayout, hashName } from "../../src/protocol/layout.ts";
import { draftReadChunk, encodeBatchRead } from "../../src/protocol/messages/batch-reads.ts";
import {
  draftContribution,
  encodeFragmentsReply,
  encodeFragmentsRequest,
} from "../../src/protocol/messages/contributions.ts";
import { encodeHostRecord, type HostRecord } from "../../src/protocol/messages/host-records.ts";
import {
  encodeAnswers,
  encodeError,
  encodeOutcomeRequest,
} from "../../src/protocol/messages/outcomes.ts";
import {
  type PartIndex,
  partCounts,
  partIndexBytes,
  writePartIndex,
} from "../../src/protocol/messages/parts.ts";
import type { Position } from "../../src/protocol/messages/position.ts";
import {
  draftPullReply,
  encodePullRequest,
  encodeStepReply,
  encodeStepRequest,
} from "../../src/protocol/messages/reads.ts";
import {
  draftRecord,
  encodeClock,
  type RecordHeader,
  type TrainerRecord,
} from "../../src/protocol/messages/records.ts";
import { checkJobName, escapeId, escapeName, unescapeName } from "../../src/protocol/names.ts";

import { JobSubjects } from "../../src/protocol/subjects.ts";
import { batchCases } from "./batch-cases.ts";
import { hex, rawMessage } from "./raw-message.ts";
import { codeOf } from "./refusal.ts";
import { toHex, toJson } from "./vector-json.ts";

type Cases = Readonly<Record<string, readonly object[]>>;

/** The job, shard and trainer of all messages in the vectors. */
const JOB = new JobSubjects("mnist");
const SHARD = 15;
const TRAINER = "worker/1";
const APPLIED = `${JOB.inbox(TRAINER)}.7f3a.applied`;

const SGD = toConfig();
const ADAM = toConfig({
  optimizer: "adam",
  learningRate: {
    schedule: "step",
    table: [
      [0, 0.01],
      [1000, 0.001],
    ],
    warmup: { steps: 100 },
  },
  l2: 1e-4,
  l2Mode: "decoupled",
  clipNorm: 5,
});

/** Names and tokens. */
export function nameCases(): Cases {
  const names = ["w", "b", "param_a", "A-Z_09", "emb:sparse-0", "layer.0/w", "a b", "*", ">", "="];
  const more = ["=41", "ü", "層", "🙂", "\ufeffw", "\0", "a\r\nb", "a".repeat(200), "ü".repeat(33)];
  const refused = ["", "a".repeat(201), "ü".repeat(34), "\ud800", "a\udc00"];
  const tokens = ["", "=41", "=c3=bc", "=C3", "=C0=80", "=ED=A0=80", "=4", "=G0", "a.b", "a b"];
  const jobs = ["mnist", "Job-7", "a".repeat(40), "", "a_b", "a.b", "ü", "a".repeat(41)];
  const idsTooLong = ["a".repeat(65), "ü".repeat(11)];
  const ids = ["worker-1", "worker/1", 'a"b', "a\\n", "a\nb", "a".repeat(64), ...idsTooLong, ""];
  return {
    names: [...names, ...more].map((name) => ({ name, token: escapeName(name) })),
    refusedNames: refused.map((name) => ({ name, code: codeOf(() => escapeName(name)) })),
    refusedTokens: tokens.map((token) => ({ token, code: codeOf(() => unescapeName(token)) })),
    ids: ids.map((id) => {
      const code = codeOf(() => escapeId(id));
      return code === "" ? { id, token: escapeId(id) } : { id, code };
    }),
    jobs: jobs.map((job) => ({ job, code: codeOf(() => checkJobName(job)) })),
  };
}

/** Subjects, streams and inboxes. */
export function subjectCases(): Cases {
  const name = "emb:sparse-0";
  const replies = ["x", "x.y.0", "", ".", "a b", "*", ">", "é"].map(
    (rest) => `${JOB.inbox(TRAINER)}.${rest}`,
  );
  const foreign = [JOB.inbox(TRAINER), "_INBOX.x", "_INBOX_mnist.other.x", "$KV.PS_mnist.job"];
  return {
    built: [
      { what: "log", subject: JOB.log(SHARD, TRAINER, "push", name, 12) },
      { what: "hostLog", subject: JOB.hostLog(SHARD, "rules") },
      { what: "shardLog", subject: JOB.shardLog(SHARD) },
      { what: "pull", subject: JOB.pull(name, 12, TRAINER) },
      { what: "block", subject: JOB.block(name, 12) },
      { what: "outcome", subject: JOB.outcome(SHARD, TRAINER) },
      { what: "owner", subject: JOB.owner(SHARD, "host 1", "check") },
      { what: "lifecycle", subject: JOB.lifecycle(TRAINER, "begin") },
      { what: "control", subject: JOB.control(TRAINER, "save") },
      { what: "manifest", subject: JOB.manifest(SHARD) },
      { what: "snapshotState", subject: JOB.snapshotState(SHARD, 2) },
      { what: "piece", subject: JOB.piece(SHARD, name, 12, 0) },
      { what: "inbox", subject: JOB.inbox(TRAINER) },
      { what: "hostInbox", subject: JOB.hostInbox("host 1") },
    ],
    streams: [
      { stream: JOB.journalStream(SHARD, 1), shard: SHARD, generation: 1 },
      { stream: JOB.journalStream(SHARD, 2), shard: SHARD, generation: 2 },
      ...["PS_mnist_SNAPSHOT", "PS_mnist_015", "PS_mnist_15_1", "PS_other_15", "PS_mnist_15_x"].map(
        (stream) => ({ stream, code: codeOf(() => JOB.parseJournalStream(stream)) }),
      ),
    ],
    inboxes: [...replies, ...foreign].map((reply) => ({
      reply,
      allowed: JOB.isTrainerInbox(reply, TRAINER),
    })),
  };
}

/** How values are encoded, and what else is read. */
export function encodingCases(): Cases {
  const integers = [0, 1, 127, 128, 255, 256, 65_535, 65_536, 2 ** 31, 2 ** 32 - 1];
  const negatives = [-1, -32, -33, -128, -129, -32_768, -32_769, -(2 ** 31)];
  const floats = [
    2 ** 32,
    -(2 ** 31) - 1,
    2 ** 53 - 1,
    0.5,
    -0.25,
    1e100,
    Number.NaN,
    1 / 0,
    -1 / 0,
  ];
  const texts = ["", "a", "a".repeat(31), "a".repeat(32), "a".repeat(256), "ü層🙂", "\ufeff"];
  const others = [null, true, false, [], [1, [2]], new Array(16).fill(0), {}, { a: { b: "c" } }];
  const bytes = [new Uint8Array(0), Uint8Array.of(1, 2), new Uint8Array(256)];
  const maps = [15, 16].map((size) =>
    Object.fromEntries(Array.from({ length: size }, (_, i) => [`k${i}`, i])),
  );
  const read = [
    "cc05 cd0005 ce00000005 cf0000000000000005 cf001fffffffffffff d005 d10005 d200000005",
    "d3ffffffffffffffff ca3fc00000 cb3ff0000000000000 cb8000000000000000 d90161 db0000000161",
    `${"91".repeat(14)}90 ${"81a161".repeat(14)}80`,
    "c50001ff c600000001ff dc000105 dd0000000105 de0001a16105 df00000001a16105",
  ];
  return {
    written: [...integers, ...negatives, ...floats, ...texts, ...others, ...bytes, ...maps].map(
      (value) => ({ value: toJson(value), hex: valueHex(value) }),
    ),
    read: read
      .join(" ")
      .split(" ")
      .map((bytesHex) => {
        const { a } = decodeMessage(rawMessage(1, `a161${bytesHex}`)).fields;
        return { hex: bytesHex, value: toJson(a) };
      }),
  };
}

/** Journal records, with the subject that says what they do to which block. */
export function recordCases(): Cases {
  const header = { session: 41, n: 3, done: 1, reply: APPLIED };
  const float32 = { epoch: 2, dtype: "float32" } as const;
  const data = floats(1, -2.5);
  const trainers: readonly (readonly [string, TrainerRecord, Uint8Array])[] = [
    [
      "init of a whole parameter",
      { verb: "init", ...header, ...float32, shape: [1, 2], start: 0, count: 2, config: SGD },
      data,
    ],
    [
      "init of the last block of a larger one, with a learning rate",
      {
        verb: "init",
        ...header,
        epoch: 300,
        dtype: "float64",
        shape: [131_075, 1],
        start: 131_072,
        count: 3,
        config: toConfig({ learningRate: 0.1, allowNonFinite: true }),
      },
      new Uint8Array(24),
    ],
    [
      "init of a scalar",
      { verb: "init", ...header, ...float32, shape: [], start: 0, count: 1, config: SGD },
      floats(7),
    ],
    [
      "init with an optimizer, a schedule and a clip",
      { verb: "init", ...header, ...float32, shape: [2], start: 0, count: 2, config: ADAM },
      data,
    ],
    [
      "push of alpha and beta: whole numbers travel as integers",
      {
        verb: "push",
        ...header,
        ...float32,
        operation: { op: "mix", alpha: 1, beta: -0.5 },
      },
      data,
    ],
    [
      "push of a gradient with its own learning rate",
      { verb: "push", ...header, ...float32, operation: { op: "grad", lr: 0.01 } },
      data,
    ],
    [
      "push of a gradient that is clipped by its norm, to be answered only when asked",
      { verb: "push", ...header, reply: "", ...float32, norm: 5, operation: { op: "grad" } },
      data,
    ],
    [
      "push of a NaN, whose norm is NaN",
      { verb: "push", ...header, ...float32, norm: Number.NaN, operation: { op: "grad" } },
      floats(Number.NaN),
    ],
    [
      "push to int64",
      {
        verb: "push",
        session: 2 ** 32,
        n: 70_000,
        done: 69_999,
        reply: "",
        epoch: 1,
        dtype: "int64",
        operation: { op: "mix", alpha: 0.5, beta: 1 },
      },
      new Uint8Array(new BigInt64Array([-5n]).buffer),
    ],
    [
      "push of two rows of a gradient, made from version 7, as bfloat16",
      {
        verb: "push",
        ...header,
        ...float32,
        encoding: "bfloat16",
        norm: 2.5,
        operation: { op: "grad", seen: 7 },
        part: { rows: 2 },
      },
      partData({ rows: Uint32Array.of(3, 70_000) }, Uint8Array.of(0x80, 0x3f, 0x20, 0xc0)),
    ],
    [
      "push of three elements of a gradient in int8",
      { verb: "push", ...header, ...float32, encoding: "int8", operation: { op: "grad" } },
      Uint8Array.from([0, 0, 0, 0x3f, 0x81, 0, 0x7f]),
    ],
    [
      "push of two rows of three elements of a gradient in e3m0",
      {
        verb: "push",
        ...header,
        ...float32,
        encoding: "e3m0",
        operation: { op: "grad" },
        part: { rows: 2 },
      },
      partData(
        { rows: Uint32Array.of(3, 70_000) },
        Uint8Array.from([0, 0, 0x80, 0x3f, 0xf1, 0x60, 0x07]),
      ),
    ],
    [
      "push of a gradient of step 5",
      {
        verb: "push",
        ...header,
        ...float32,
        norm: 2.5,
        operation: { op: "grad", lr: 0.5, step: 5 },
      },
      data,
    ],
    [
      "push of alpha and beta to two elements of one row",
      {
        verb: "push",
        ...header,
        ...float32,
        norm: 2.5,
        operation: { op: "mix", alpha: 1, beta: -0.5 },
        part: { rows: 1, inner: 2 },
      },
      partData({ rows: Uint32Array.of(2), inner: Uint32Array.of(0, 5) }, data),
    ],
    ["set", { verb: "set", ...header, ...float32 }, data],
  ];
  const synchronization = { mode: "sync", trainers: 4, backups: 1, reduce: "mean" } as const;
  const hosts: readonly HostRecord[] = [
    { verb: "rules", rules: 1 },
    { verb: "rules", rules: 1, synchronization },
    { verb: "members", revision: 3, started: true, trainers: ["a", "b:1"] },
    {
      verb: "declare",
      trainer: TRAINER,
      parameters: [
        {
          name: "emb:sparse-0",
          dtype: "float32",
          shape: [6, 3],
          config: toConfig({ learningRate: 0.5 }),
          epoch: 3,
          layout: { elements: 18, blockElements: 9, blocks: 2, firstShard: 4, shards: 16 },
          firstNumber: 70_000,
        },
      ],
    },
    { verb: "drop", parameter: "emb:sparse-0", epoch: 3 },
    { verb: "floor", session: 40 },
    { verb: "sessions", upTo: 40, live: [7, 38] },
    {
      verb: "forget",
      trainers: [
        [TRAINER, 41],
        ["w2", 7],
      ],
    },
    { verb: "end", trainer: TRAINER, session: 41 },
    { verb: "close", fragment: "f0", round: 8, contributions: 3 },
  ];
  return {
    trainers: trainers.map(([what, record, bytes]) => {
      const draft = draftRecord(record, bytes.length);
      draft.data.set(bytes);
      const isWhole = record.verb === "init" && record.start === 0;
      const [shard, name, index] = isWhole ? [6, "w", 0] : [SHARD, "emb:sparse-0", 1];
      const subject = JOB.log(shard, TRAINER, record.verb, name, index);
      return { what, subject, ...described(sealMessage(draft)) };
    }),
    batches: batchCases(header).map(({ what, bytes }) => {
      return { what, subject: JOB.batch(SHARD, TRAINER), ...described(bytes) };
    }),
    clocks: [
      {
        what: "clock of step 5",
        subject: JOB.clock(SHARD, TRAINER),
        ...described(encodeClock({ verb: "clock", ...header, step: 5 })),
      },
    ],
    contributions: contributionCases(header),
    hosts: hosts.map((record) => ({
      what: record.verb,
      subject: JOB.hostLog(SHARD, record.verb),
      ...described(encodeHostRecord(record)),
    })),
  };
}

/** A contribution in one record, and the second part of another one, in int8. */
function contributionCases(header: RecordHeader): readonly object[] {
  const said = {
    fragment: "f0",
    base: 7,
    steps: 24,
    tokens: 49_152,
    form: "displacement",
  } as const;
  const run = {
    ...({ verb: "push", dtype: "float32", operation: { op: "grad" } } as const),
    numbers: Uint32Array.of(70_000, 70_001),
    counts: Uint32Array.of(3, 2),
    ...{ parts: undefined, norms: undefined, seen: undefined },
  };
  const whole = { ...said, stepMs: 812.5, id: 3, part: 0, parts: 1 };
  const plain = draftContribution(header, whole, [{ ...run, encoding: undefined }]);
  plain.values[0]?.set(floats(1, -2, 0.5, 4, 8));
  const second = { ...said, id: 4, part: 1, parts: 2 };
  const encoded = draftContribution(header, second, [{ ...run, encoding: "int8" }]);
  const groups = { scales: encoded.scales[0] ?? NONE, codes: encoded.values[0] ?? NONE };
  encodeGroups("int8", run.counts, Float32Array.of(1, -2, 0.5, 4, 8), groups);
  const subject = JOB.contribute(SHARD, TRAINER);
  return [
    { what: "contribution", subject, ...described(sealMessage(plain.draft)) },
    { what: "second part of a contribution", subject, ...described(sealMessage(encoded.draft)) },
  ];
}

const NONE = new Uint8Array(0);

/** Answers, outcome requests, pulls and their replies. */
export function answerCases(): Cases {
  const at = { generation: 1, seq: 900 };
  const pullReply = draftPullReply({ epoch: 2, dtype: "float32", ...at, version: 17 }, 8);
  pullReply.data.set(floats(1, -2.5));
  const encodedReply = draftPullReply(
    { epoch: 2, dtype: "float32", encoding: "float16", ...at, version: 17 },
    4,
  );
  encodedReply.data.set([0x00, 0x3c, 0x00, 0xc1]);
  const grouped = draftPullReply(
    { epoch: 2, dtype: "float32", encoding: "e3m0", ...at, version: 17 },
    6,
  );
  grouped.data.set([0, 0, 0x80, 0x3f, 0xf1, 0x06]);
  const answers = encodeAnswers({
    shard: SHARD,
    generation: 1,
    session: 41,
    outcomes: [
      { n: 3, seq: 900, version: 17 },
      { n: 4, seq: 901, version: 0, code: "STALE_EPOCH", message: "expected epoch 2; received 1" },
    ],
  });
  return {
    answers: [
      { what: "answers", subject: APPLIED, ...described(answers) },
      {
        what: "outcome request",
        subject: JOB.outcome(SHARD, TRAINER),
        ...described(encodeOutcomeRequest({ session: 41, numbers: [3, 4], ...at })),
      },
    ],
    pulls: [
      {
        what: "pull",
        subject: JOB.pull("emb:sparse-0", 1, TRAINER),
        ...described(encodePullRequest({ epoch: 2, ...at, waitMs: 900 })),
      },
      { what: "pull reply", ...described(sealMessage(pullReply)) },
      {
        what: "pull of two rows as float16, after step 5",
        subject: JOB.pull("emb:sparse-0", 1, TRAINER),
        ...described(
          encodePullRequest(
            { epoch: 2, ...at, waitMs: 900, step: 5, encoding: "float16", part: { rows: 2 } },
            { rows: Uint32Array.of(3, 70_000) },
          ),
        ),
      },
      { what: "pull reply as float16", ...described(sealMessage(encodedReply)) },
      { what: "pull reply of three elements in e3m0", ...described(sealMessage(grouped)) },
    ],
    reads: readCases(at),
    steps: [
      {
        what: "step request",
        subject: JOB.step(SHARD, TRAINER),
        ...described(encodeStepRequest({ ...at, revision: 3, step: 5, waitMs: 900 })),
      },
      {
        what: "step reply",
        ...described(encodeStepReply({ ...at, revision: 3, step: 5, waitingFor: ["a", "b:1"] })),
      },
    ],
    fragments: [
      {
        what: "request for the versions of fragments",
        subject: JOB.fragments(SHARD, TRAINER),
        ...described(encodeFragmentsRequest({ ...at, waitMs: 900 })),
      },
      {
        what: "request for a version of a fragment",
        subject: JOB.fragments(SHARD, TRAINER),
        ...described(encodeFragmentsRequest({ ...at, fragment: "f0", version: 8, waitMs: 900 })),
      },
      {
        what: "request for a version of a fragment by a member",
        subject: JOB.fragments(SHARD, TRAINER),
        ...described(
          encodeFragmentsRequest({ ...at, fragment: "f0", version: 8, member: true, waitMs: 900 }),
        ),
      },
      {
        what: "versions of fragments",
        ...described(
          encodeFragmentsReply({
            ...at,
            fragments: [
              ["embeddings", 0, true],
              ["f0", 8, false],
            ],
            account: {
              processed: { contributions: 9, steps: 216, tokens: 442_368 },
              merged: { contributions: 6, steps: 144, tokens: 294_912 },
              late: { contributions: 1, steps: 24, tokens: 49_152 },
              dropped: { contributions: 1, steps: 24, tokens: 49_152 },
            },
          }),
        ),
      },
    ],
    errors: [
      new PserverError("STALE_EPOCH", "w block 0: expected epoch 2; received 1", {
        parameter: "w",
        block: 0,
        expected: 2,
        received: 1,
      }),
      new PserverError("JOURNAL_REPLACED", "shard 15: the journal was made anew", {
        shard: SHARD,
        expected: { generation: 2, seq: 3 },
      }),
      new PserverError("BUSY", "later"),
    ].map((error) => ({ what: error.code, ...described(encodeError(error)) })),
  };
}

/** Batched reads of blocks and parts, and a chunk of a reply. */
function readCases(at: Position): object[] {
  const numbers = Uint32Array.of(3, 70_001, 7);
  const parts = {
    ...{ rows: Uint32Array.of(0, 2, 1), rowList: Uint32Array.of(3, 69_999, 0) },
    ...{ inner: Uint32Array.of(0, 1, 0), innerList: Uint32Array.of(1) },
  };
  const rows = { rows: parts.rows, rowList: parts.rowList, inner: undefined, innerList: undefined };
  const have = Float64Array.of(0, 17, 2 ** 40);
  const header = { ...at, waitMs: 900 };
  const wanted = { numbers, parts: undefined, have: undefined };
  const chunk = draftReadChunk({ from: 0, more: true, ...at, versions: Float64Array.of(4, 0) }, 16);
  chunk.values.set(floats(1, -2.5, 3));
  chunk.values.fill(0, 12);
  const versions = Float64Array.of(4, 9);
  const grouped = draftReadChunk({ from: 0, more: false, ...at, versions }, 16);
  grouped.values.set([0, 0, 0, 0x3f, 0x81, 0, 0x7f, 0, 0, 0, 0x80, 0x3f, 0x7f, 0, 0, 0]);
  const subject = JOB.read(SHARD, TRAINER);
  return [
    {
      what: "batched read of whole blocks",
      subject,
      ...described(encodeBatchRead(header, wanted)),
    },
    {
      what: "batched read of a whole block, an element of each of two rows, and a row",
      subject,
      ...described(encodeBatchRead(header, { ...wanted, parts })),
    },
    {
      what: "batched read of a block and rows as bfloat16 after step 5, of which the reader has some, from the third entry on",
      subject,
      ...described(
        encodeBatchRead(
          { ...header, step: 5, encoding: "bfloat16", from: 2 },
          { numbers, parts: rows, have },
        ),
      ),
    },
    {
      what: "chunk of the reply: three elements, and a block that the reader has",
      ...described(sealMessage(chunk.draft)),
    },
    {
      what: "chunk of the reply in int8: three elements of one block and one of another",
      ...described(sealMessage(grouped.draft)),
    },
  ];
}

/** Requests and replies of the lifecycle. */
export function lifecycleCases(): Cases {
  const w = { name: "w", dtype: "float32", shape: [784, 10], config: SGD } as const;
  const big = { name: "emb:sparse-0", dtype: "float32", shape: [3_000, 1_000] } as const;
  const rate = toConfig({ learningRate: 0.5 });
  const layouts = [w, big].map(({ name, dtype, shape }) =>
    computeLayout({ name, dtype, shape, shards: 16, maxPayloadBytes: 8_388_608 }),
  );
  const known = { ...w, epoch: 1, ready: true, layout: layouts[0], firstNumber: 7 };
  const declaration = { ...big, config: rate, epoch: 1 };
  const declared = { ...declaration, ready: false, layout: layouts[1], firstNumber: 8 };
  const session = { session: 41 };
  const at = [{ shard: SHARD, generation: 1, seq: 900 }];
  const begun = { selected: true, state: "initializing", epoch: 1, by: TRAINER };
  const requests = [
    ["join", { token: "6f1c2d8e-7f3a-4b5c-8d9e-0a1b2c3d4e5f" }],
    ["renew", session],
    ["leave", session],
    ["begin", session],
    ["declare", { ...session, epoch: 1, parameters: [w, { ...big, config: rate }] }],
    ["create", { ...session, parameter: w }],
    ["finish", { ...session, epoch: 1, at }],
    ["finish", { ...session, epoch: 3, parameter: "w", at: [] }],
    ["abort", { ...session, epoch: 1 }],
    ["status", { names: ["w", "emb:sparse-0", "none"] }],
    ["status", { limit: 256, after: "b" }],
    ["status", {}],
  ] as const;
  const job = {
    session: 41,
    made: "2026-11-22T10:00:00.123456789Z",
    shards: 16,
    leaseMs: 5_000,
    journal: "file",
  };
  const ready = { state: "ready", epoch: 1, by: TRAINER, shards: 16 };
  const replies = [
    ["join", { ...job, synchronization: { mode: "async" }, maxPayloadBytes: 8_388_608 }],
    ["renew", session],
    ["leave", session],
    ["begin", begun],
    ["declare", { parameters: [{ ...known, ready: false }, declared] }],
    ["create", { ...begun, parameters: [{ ...known, ready: false }], at: [] }],
    ["finish", { state: "ready", epoch: 1, at }],
    ["abort", { ...begun, selected: false, state: "uninitialized" }],
    [
      "status",
      {
        ...ready,
        parameters: [known, declared, null],
        more: false,
        at: [{ generation: 1, seq: 9 }],
      },
    ],
  ] as const;
  return {
    requests: requests.map(([verb, fields]) => ({
      what: verb,
      subject: JOB.lifecycle(TRAINER, verb),
      ...described(encodeMessage(fields)),
    })),
    replies: replies.map(([verb, fields]) => ({ what: verb, ...described(encodeMessage(fields)) })),
  };
}

/** Placement and block layouts. */
export function layoutCases(): Cases {
  const names = ["", "param_a", "param_b", "w", "b", "p_0", "p_999", "ü", "emb:sparse-0"];
  const inputs = [
    { name: "w", dtype: "float32", shape: [], shards: 16, maxPayloadBytes: 8_388_608 },
    { name: "w", dtype: "float32", shape: [1_048_576], shards: 16, maxPayloadBytes: 8_388_608 },
    { name: "w", dtype: "float32", shape: [1_048_577], shards: 16, maxPayloadBytes: 8_388_608 },
    { name: "b", dtype: "float64", shape: [3_000, 1_000], shards: 1, maxPayloadBytes: 8_388_608 },
    { name: "p_0", dtype: "int64", shape: [3, 1_000_000], shards: 7, maxPayloadBytes: 8_388_608 },
    { name: "w", dtype: "float32", shape: [49_153], shards: 16, maxPayloadBytes: 262_144 },
  ] as const;
  return {
    hashes: names.map((name) => ({ name, hash: hashName(name) })),
    layouts: inputs.map((input) => ({ ...input, layout: computeLayout(input) })),
  };
}

/** Bytes that every reader refuses, and with what. */
export function refusedCases(): Cases {
  const good = encodeMessage({ a: 1 }, Uint8Array.of(1, 2, 3, 4));
  const flipped = Uint8Array.from(good);
  flipped[20] = (flipped[20] ?? 0) ^ 0x10;
  const version = Uint8Array.from(encodeMessage({ a: 1 }));
  version[12] = 2;
  const messages: readonly (readonly [string, Uint8Array])[] = [
    ["nothing", new Uint8Array(0)],
    ["no envelope", hex("81a16101")],
    ["the version first", hex("82a17601a3637263ce00000000")],
    ["cut by one byte", good.subarray(0, -1)],
    ["one byte more", Buffer.concat([good, Uint8Array.of(0)])],
    ["one bit changed", flipped],
    ["version 2", sealMessage({ bytes: version, data: version })],
    ["a list for tensor bytes", rawMessage(1, "a464617461 920102")],
    ["tensor bytes before another entry", rawMessage(2, "a464617461 c40101 a161 01")],
    ["a key twice", rawMessage(2, "a161 01 a161 02")],
    ["a second checksum", rawMessage(1, "a3637263 ce00000000")],
    ["a key that is a number", rawMessage(1, "01 02")],
    ["the key __proto__", rawMessage(1, "a95f5f70726f746f5f5f 01")],
    ["an extension", rawMessage(1, "a161 d4 01 00")],
    ["text that is not UTF-8", rawMessage(1, "a161 a2c328")],
    ["text with half a surrogate pair", rawMessage(1, "a161 a3eda080")],
    ["a byte after the last entry", rawMessage(1, "a161 01 c0")],
    ["an entry too few", rawMessage(2, "a161 01")],
    ["4 GiB announced", rawMessage(1, "a464617461 c6ffffffff 01")],
    ["4 billion list entries announced", rawMessage(1, "a161 ddffffffff 01")],
    ["lists 17 deep with the message", rawMessage(1, `a161 ${"91".repeat(15)} 90`)],
    ["maps 17 deep with the message", rawMessage(1, `a161 ${"81a161".repeat(15)} 80`)],
  ];
  return {
    messages: messages.map(([what, bytes]) => ({
      what,
      hex: toHex(bytes),
      code: codeOf(() => decodeMessage(bytes)),
    })),
  };
}

/** A message and what is in it. */
function described(bytes: Uint8Array): object {
  const { fields, data } = decodeMessage(bytes);
  const tensor = data.length === 0 ? {} : { data: toHex(data) };
  return { fields: toJson(fields), ...tensor, crc: readCrc(bytes), hex: toHex(bytes) };
}

/** The bytes of one value: what a message with the entry `a` alone has after the key. */
function valueHex(value: unknown): string {
  return toHex(encodeMessage({ a: value }).subarray(15));
}

/** An index and the elements after it, as tensor bytes. */
function partData(index: PartIndex, elements: Uint8Array): Uint8Array {
  const bytes = partIndexBytes(partCounts(index));
  const data = new Uint8Array(bytes + elements.length);
  writePartIndex(data, index);
  data.set(elements, bytes);
  return data;
}

function floats(...values: number[]): Uint8Array {
  return new Uint8Array(Float32Array.from(values).buffer);
}
