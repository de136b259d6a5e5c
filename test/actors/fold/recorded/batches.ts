import { Random } from "../../../../examples/digits/random.ts";
import { encodeMessage } from "../../../../src/protocol/codec.ts";
import type { ParameterSettings } from "../../../../src/protocol/config/index.ts";
import type { PushOperation } from "../../../../src/protocol/messages/records.ts";
import type { BatchUpdate } from "../batch-payload.ts";
import { SHARD, SUBJECTS } from "../journal-writer.ts";
import type { SceneWriter } from "./scene-writer.ts";
import type { Scene } from "./scenes.ts";

const random = new Random(3003);
const GRAD: PushOperation = { op: "grad" };
const MIX: PushOperation = { op: "mix", alpha: 0.5, beta: -2 };
const SHAPE = [6, 4];

function floats(count: number): Float32Array {
  return Float32Array.from({ length: count }, () => random.normal());
}

function push(
  parameter: string,
  data: BatchUpdate["data"],
  operation: PushOperation = GRAD,
  more: Partial<Extract<BatchUpdate["change"], { kind: "push" }>> = {},
): BatchUpdate {
  return { parameter, data, change: { kind: "push", operation, ...more } };
}

function rows(...numbers: readonly number[]) {
  return { part: { rows: Uint32Array.from(numbers) } };
}

const INITS: readonly (readonly [string, BatchUpdate["data"], ParameterSettings])[] = [
  ["dense", floats(24), { optimizer: "adam", learningRate: 0.1, clipNorm: 3, l2: 0.01 }],
  ["rows", floats(24), { optimizer: "adagrad", learningRate: 0.1, sparse: true }],
  ["double", Float64Array.from(floats(24)), { learningRate: 0.1, stalenessScaling: true }],
  ["count", new Int32Array(24), { optimizer: "none" }],
];

/** Parameters that a batch initializes together. */
function initAll(writer: SceneWriter): void {
  for (const [parameter, data, config] of INITS) {
    writer.journal.declare(data, { parameter, config, shape: SHAPE });
  }
  writer.batch(
    INITS.map(([parameter, data]) => {
      return { parameter, data, change: { kind: "init" } };
    }),
  );
}

/** All that a batch can carry, applied. */
export const batches: Scene = (writer) => {
  writer.rules();
  initAll(writer);
  for (let round = 0; round < 3; round++) {
    writer.batch([
      push("dense", floats(24)),
      push("rows", floats(8), GRAD, rows(round, 5)),
      push("double", Float64Array.from(floats(24)), { op: "grad", seen: 1 }),
      push(
        "count",
        Int32Array.from({ length: 24 }, (_, i) => i - round),
      ),
    ]);
    writer.push({ parameter: "dense", data: floats(24) });
  }
  const part = { rows: Uint32Array.of(1, 4), inner: Uint32Array.of(0, 3) };
  writer.batch([
    push("dense", floats(24), { op: "grad", lr: 0.5 }, { encoding: "bfloat16" }),
    push("rows", floats(4), MIX, { part, encoding: "float16" }),
    { parameter: "double", data: Float64Array.from(floats(24)), change: { kind: "set" } },
  ]);
  for (const encoding of ["int8", "e3m0"] as const) {
    writer.batch([
      push("dense", floats(24), GRAD, { encoding }),
      push("rows", floats(8), GRAD, { ...rows(2, 5), encoding }),
      push("double", Float64Array.from(floats(24))),
    ]);
  }
  writer.batch([push("rows", floats(24)), push("count", Int32Array.of(7, 8, 9, 1), MIX, rows(3))]);
};

/** Batches of which one entry, or the form, is refused: none leaves a trace but its outcome. */
export const batchRefusals: Scene = (writer) => {
  writer.rules();
  initAll(writer);
  const good = push("dense", floats(24));
  const bad: readonly BatchUpdate[] = [
    push("nothing", floats(4)),
    { ...push("rows", floats(24)), index: 7 },
    { ...push("rows", floats(24)), epoch: 2 },
    push("rows", Float64Array.from(floats(24))),
    push("rows", floats(23)),
    push("rows", new Float32Array(24).fill(Number.NaN)),
    push("rows", floats(8), GRAD, rows(3, 6)),
    push("count", new Int32Array(4), GRAD, rows(3)),
    push("double", new Float64Array(24), { op: "grad", seen: 99 }),
    push("rows", floats(24), { op: "grad", step: 1 }),
    { parameter: "rows", data: floats(24), change: { kind: "init" } },
  ];
  for (const update of bad) writer.batch([good, update]);
  writer.batch([good, good]);
  const run = { verb: "set", dtype: "float32", entries: 1, elements: 24 };
  const lies = [{}, { ...run, dtype: "none" }, { ...run, entries: 2 }, { ...run, elements: 23 }];
  for (const runs of [[], 7, ...lies.map((lie) => [lie]), Array(65).fill(run)]) {
    writer.batchOf((head) => encodeMessage({ ...head, runs }, new Uint8Array(112)));
  }
  // The columns lie: a block of no elements, another one's number of them, bytes that are not zero, 4,097 entries.
  for (const [at, value] of [
    [8, 0],
    [8, 23],
    [7, 1],
  ] as const) {
    const data = new Uint8Array(112);
    new DataView(data.buffer).setUint32(0, writer.journal.numberOf("dense", 1, 0), true);
    data[8] = 24;
    data[at] = value;
    writer.batchOf((head) => encodeMessage({ ...head, runs: [run] }, data));
  }
  const many = { ...run, entries: 4097, elements: 4097 };
  writer.batchOf((head) => encodeMessage({ ...head, runs: [many] }, new Uint8Array(8)));
  writer.batch([good]);
  // Of a sender that knows its own number only: nobody can be answered.
  writer.journal.append(SUBJECTS.batch(SHARD, "alice"), encodeMessage({ n: 1 }));
  writer.batch([good, push("rows", floats(24))]);
};

/** Gradients of steps in batches; one is late, one early, one of a stranger. */
export const batchSteps: Scene = (writer) => {
  const synchronization = { mode: "sync", trainers: 2, backups: 0 } as const;
  writer.rules(synchronization);
  initAll(writer);
  const trainers = ["alice", "bob"];
  writer.journal.host({ verb: "members", revision: 1, started: true, trainers });
  const gradients = (trainer: string, step: number): void => {
    const operation = { op: "grad", step } as const;
    const updates = [
      push("dense", floats(24), operation),
      push("rows", floats(8), operation, rows(step, 5)),
      push("count", new Int32Array(24).fill(step), operation),
    ];
    writer.batch(updates, trainer);
  };
  for (let step = 1; step <= 3; step++) {
    for (const trainer of trainers) {
      gradients(trainer, step);
      if (step === 2) gradients(trainer, step);
      writer.clock(trainer, step);
    }
  }
  gradients("alice", 1);
  gradients("alice", 9);
  gradients("carol", 4);
};

/** All that a note can be, taken or refused. */
export const notes: Scene = (writer) => {
  writer.rules();
  writer.init("w", floats(4), { learningRate: 0.1 });
  writer.note({ loss: 0.25, step: 12, mark: "before", good: true });
  writer.push({ parameter: "w", data: floats(4) });
  writer.note({ text: "x".repeat(4_000) });
  for (const note of [7, {}, { x: Number.NaN }, { x: [1] }, { x: null }, { "": 1 }]) {
    writer.noteOf((head) => encodeMessage({ ...head, note }));
  }
  writer.noteOf((head) => encodeMessage({ ...head, note: { ["n".repeat(129)]: 1 } }));
  const many = Object.fromEntries(Array.from({ length: 65 }, (_, i) => [`e${i}`, i]));
  writer.noteOf((head) => encodeMessage({ ...head, note: many }));
  writer.noteOf((head) => encodeMessage({ ...head, reply: "elsewhere", note: { x: 1 } }));
  // Too long to be read: nobody can be answered.
  writer.noteOf((head) => encodeMessage({ ...head, note: { x: "x".repeat(6_000) } }));
  writer.note({ loss: -1e300 }, "bob");
  writer.push({ parameter: "w", data: floats(4) });
};

/** A journal whose rules are put into force again: nothing changes, and the trainers keep step as before. */
export const rulesAgain: Scene = (writer) => {
  writer.rules({ mode: "ssp", trainers: 1, staleness: 0 });
  initAll(writer);
  writer.rules();
  writer.journal.host({ verb: "members", revision: 1, started: true, trainers: ["alice"] });
  writer.batch([push("dense", floats(24)), push("rows", floats(24))]);
  writer.clock("alice", 1);
  writer.note({ loss: 0.5 });
};
