import { Random } from "../../../../examples/digits/random.ts";
import type { Rules } from "../../../../src/actors/fold/rules.ts";
import {
  OPTIMIZERS,
  type Optimizer,
  type ParameterSettings,
  type SynchronizationInput,
  toSynchronization,
} from "../../../../src/protocol/config/index.ts";
import type { HalfDtype } from "../../../../src/protocol/dtypes.ts";
import { toHalfFloats } from "../../../../src/protocol/encoding/half-floats.ts";
import { batches, batchRefusals, batchSteps, notes, rulesAgain } from "./batches.ts";
import { clocks, declarations, forget, initializations, sessions, waste } from "./grants.ts";
import { guardedRoundsScene, guardsScene } from "./guards.ts";
import { extremes, limits, refusals, restoredStates, stepRefusals } from "./refusals.ts";
import {
  cohortScene,
  keptContributions,
  openContributions,
  roundRefusals,
  roundsScene,
  sampledRounds,
} from "./rounds.ts";
import type { SceneWriter } from "./scene-writer.ts";

/** What happens in a recorded journal. */
export type Scene = (writer: SceneWriter) => void;

const random = new Random(2026);

function floats(count: number): Float32Array {
  return Float32Array.from({ length: count }, () => random.normal());
}

function doubles(count: number): Float64Array {
  return Float64Array.from({ length: count }, () => random.normal());
}

const RATES: readonly ParameterSettings["learningRate"][] = [
  0.05,
  { schedule: "linear", rate: 0.1, a: 0.01, b: 0.02 },
  { schedule: "polynomial", rate: 0.1, a: 0.1, b: 0.5 },
  { schedule: "exponential", rate: 0.1, a: 0.9, b: 3 },
  { schedule: "discrete-exponential", rate: 0.1, a: 0.5, b: 4 },
  { schedule: "cosine", rate: 0.1, min: 0.01, steps: 10, warmup: { steps: 3, from: 0.1 } },
  {
    schedule: "step",
    table: [
      [0, 0.1],
      [4, 0.05],
    ],
  },
];

/** One optimizer: plain in float64, with all that can go with it in float32. */
function optimizerScene(optimizer: Optimizer["name"], place: number): Scene {
  return (writer) => {
    writer.rules();
    const learningRate = RATES[place % RATES.length] ?? 0.05;
    const clips = { clipNorm: 6, clipValue: 1.5, gradientScale: 0.75 };
    if (optimizer === "none") {
      writer.init("plain", doubles(5), { optimizer });
      writer.init("full", floats(13), { optimizer, ...clips });
    } else {
      const penalties = { l1: 0.01, l2: 0.02, stalenessScaling: true };
      writer.init("plain", doubles(5), { optimizer, learningRate: 0.1 });
      writer.init("full", floats(13), { optimizer, learningRate, ...clips, ...penalties });
    }
    for (let step = 0; step < 8; step++) {
      writer.push({ parameter: "plain", data: doubles(5) });
      writer.push({ parameter: "full", data: floats(13) });
    }
    if (optimizer === "none") return;
    writer.push({ parameter: "full", data: floats(13), operation: { op: "grad", lr: 0.2 } });
    writer.push({ parameter: "full", data: floats(13), operation: { op: "grad", seen: 4 } });
    writer.push({
      parameter: "full",
      data: floats(13),
      operation: { op: "mix", alpha: 0.5, beta: 0.25 },
    });
    writer.push({ parameter: "full", data: floats(13) });
  };
}

/** Decoupled L2 under every rule that may have it. */
const decoupled: Scene = (writer) => {
  writer.rules();
  const names = OPTIMIZERS.filter((name) => name !== "none" && name !== "ftrl");
  for (const optimizer of names) {
    const settings = { optimizer, learningRate: 0.1, l2: 0.05, l2Mode: "decoupled" } as const;
    writer.init(optimizer, floats(5), settings);
    for (let step = 0; step < 3; step++) writer.push({ parameter: optimizer, data: floats(5) });
  }
};

const sparse: Scene = (writer) => {
  writer.rules();
  const shape = [9, 3];
  for (const optimizer of ["adam", "ftrl", "momentum"] as const) {
    const settings = { optimizer, learningRate: 0.1, l1: 0.01, l2: 0.01, sparse: true };
    writer.init(optimizer, floats(27), settings, shape);
    for (const rows of [[0], [2, 3, 8], [0, 1, 2, 3, 4, 5, 6, 7, 8], [3, 7]]) {
      writer.push({ parameter: optimizer, data: floats(3 * rows.length), part: { rows } });
    }
    writer.push({ parameter: optimizer, data: floats(27) });
    writer.push({ parameter: optimizer, data: floats(6), part: { rows: [1, 8] } });
    // Refused, and so without a trace: rows that are not there or not ascending.
    writer.push({ parameter: optimizer, data: floats(3), part: { rows: [9] } });
    writer.push({ parameter: optimizer, data: floats(6), part: { rows: [3, 3] } });
  }
};

const partsAndEncodings: Scene = (writer) => {
  writer.rules();
  writer.init("dense", floats(28), { optimizer: "rmsprop", learningRate: 0.01 }, [7, 4]);
  writer.init(
    "rows",
    floats(28),
    { optimizer: "adagrad", learningRate: 0.1, sparse: true },
    [7, 4],
  );
  const mix = { op: "mix", alpha: 0.5, beta: -2 } as const;
  for (const encoding of ["bfloat16", "float16", "int8", "e3m0"] as const) {
    writer.push({ parameter: "dense", data: floats(28), encoding });
    writer.push({ parameter: "dense", data: floats(28), encoding, operation: mix });
    writer.push({ parameter: "rows", data: floats(12), encoding, part: { rows: [0, 2, 6] } });
    const part = { rows: [1, 5, 6], inner: [0, 3] };
    writer.push({ parameter: "dense", data: floats(6), encoding, part, operation: mix });
  }
  writer.push({
    parameter: "dense",
    data: floats(6),
    part: { rows: [0, 3], inner: [1, 2, 3] },
    operation: { op: "mix", alpha: 0, beta: 1 },
  });
};

const integers: Scene = (writer) => {
  writer.rules();
  writer.init("int32", Int32Array.of(2 ** 31 - 1, -1, 0, 7), { optimizer: "none" });
  writer.init("int64", BigInt64Array.of(2n ** 63n - 1n, -1n, 0n), { optimizer: "none" });
  writer.init("fixed", Int32Array.of(1, 2, 3), { static: true });
  for (let step = 0; step < 3; step++) {
    writer.push({ parameter: "int32", data: Int32Array.of(1, -5, 2 ** 30, step) });
    writer.push({ parameter: "int64", data: BigInt64Array.of(1n, -5n, 2n ** 62n) });
  }
  const mix = { op: "mix", alpha: 1.5, beta: 0.5 } as const;
  writer.push({ parameter: "int32", data: Int32Array.of(3, 3, 3, 3), operation: mix });
  writer.push({ parameter: "fixed", data: Int32Array.of(3, 3, 3), operation: mix });
  writer.set("int64", BigInt64Array.of(4n, 5n, 6n));
  writer.init("gone", floats(3), {});
  writer.journal.host({ verb: "drop", parameter: "gone", epoch: 1 });
  writer.push({ parameter: "int64", data: BigInt64Array.of(1n, 1n, 1n) });
};

const HALVES = ["bfloat16", "float16"] as const;

/** Half floats by rules with slots and without, by rows, in parts, in batches, and with NaNs of any bits. */
const halfFloats: Scene = (writer) => {
  writer.rules();
  const adam = { optimizer: "adam", learningRate: 0.1, clipNorm: 3, l1: 0.01 } as const;
  const bits = (dtype: HalfDtype, count: number) => toHalfFloats(dtype, floats(count));
  for (const dtype of HALVES) {
    const [plain, ruled, rows, any] = ["plain", "ruled", "rows", "any"].map((name) => dtype + name);
    if (!plain || !ruled || !rows || !any) continue;
    writer.init(plain, bits(dtype, 9), { learningRate: 0.5 }, [9], dtype);
    writer.init(ruled, bits(dtype, 13), adam, [13], dtype);
    writer.init(rows, bits(dtype, 21), { ...adam, sparse: true }, [7, 3], dtype);
    writer.init(any, Uint16Array.of(0x7fc1, 0xffff, 1), { allowNonFinite: true }, [3], dtype);
    for (let step = 0; step < 3; step++) {
      writer.push({ parameter: plain, data: bits(dtype, 9), dtype });
      writer.push({ parameter: ruled, data: bits(dtype, 13), dtype });
      writer.push({ parameter: rows, data: bits(dtype, 6), dtype, part: { rows: [step, 6] } });
    }
    const mix = { op: "mix", alpha: 0.3, beta: 1.7 } as const;
    const part = { rows: [0, 5], inner: [0, 2] };
    writer.push({ parameter: rows, data: bits(dtype, 4), dtype, part, operation: mix });
    writer.push({ parameter: any, data: Uint16Array.of(1, 0, 0x7f80), dtype, operation: mix });
    writer.set(any, Uint16Array.of(0x7f81, 0x7c01, 0x8000), dtype);
    writer.set(plain, Uint16Array.of(0x7fc1, 0, 0, 0, 0, 0, 0, 0, 0), dtype);
    const change = { kind: "push", operation: { op: "grad" } } as const;
    writer.batch([
      { parameter: plain, data: bits(dtype, 9), dtype, change },
      { parameter: ruled, data: bits(dtype, 13), dtype, change },
      { parameter: any, data: Uint16Array.of(1, 2, 3), dtype, change: { kind: "set" } },
    ]);
  }
};

/** Half floats in steps. */
const halfSteps: Scene = (writer) => {
  writer.rules({ mode: "sync", trainers: 1 });
  const config = { optimizer: "momentum", learningRate: 0.1, momentum: 0.9 } as const;
  for (const dtype of HALVES) {
    const bits = (count: number) => toHalfFloats(dtype, floats(count));
    writer.init(dtype, bits(6), config, [6], dtype);
    writer.init(`${dtype}-rows`, bits(8), { ...config, sparse: true }, [4, 2], dtype);
  }
  writer.journal.host({ verb: "members", revision: 1, started: true, trainers: ["alice"] });
  for (let step = 1; step <= 3; step++) {
    for (const dtype of HALVES) {
      const bits = (count: number) => toHalfFloats(dtype, floats(count));
      const operation = { op: "grad", step } as const;
      writer.push({ parameter: dtype, data: bits(6), dtype, operation });
      const part = { rows: [step, 3] };
      writer.push({
        parameter: `${dtype}-rows`,
        data: bits(part.rows.length * 2),
        dtype,
        part,
        operation,
      });
      if (step === 3) break;
    }
    if (step < 3) writer.clock("alice", step);
  }
};

/** Integers of 8 bits, which wrap and are held at their ends, and bools, which are only set. */
const bytes: Scene = (writer) => {
  writer.rules();
  writer.init("uint8", Uint8Array.of(255, 1, 0, 7, 8), { optimizer: "none" });
  writer.init("int8", Int8Array.of(127, -1, 0), { optimizer: "none", sparse: true }, [3, 1]);
  writer.init("bool", Uint8Array.of(0, 1, 1), {}, [3], "bool");
  writer.init("two", Uint8Array.of(0, 2), {}, [2], "bool");
  writer.push({ parameter: "uint8", data: Uint8Array.of(1, 255, 9, 3, 4) });
  writer.push({ parameter: "int8", data: Int8Array.of(1, -128), part: { rows: [0, 2] } });
  const mix = { op: "mix", alpha: 1.5, beta: -2.5 } as const;
  writer.push({
    parameter: "uint8",
    data: Uint8Array.of(1, 2, 3),
    operation: mix,
    part: { rows: [0, 2, 4] },
  });
  writer.push({ parameter: "int8", data: Int8Array.of(100, -100, 3), operation: mix });
  const bools = Uint8Array.of(1, 0, 1);
  writer.push({ parameter: "bool", data: bools, dtype: "bool" });
  writer.push({ parameter: "bool", data: bools, dtype: "bool", operation: mix });
  writer.set("bool", Uint8Array.of(1, 0, 3), "bool");
  writer.set("bool", bools, "bool");
  const set = { kind: "set" } as const;
  writer.batch([
    { parameter: "uint8", data: Uint8Array.of(1, 2, 3, 4, 5), change: set },
    { parameter: "bool", data: Uint8Array.of(0, 0, 255), dtype: "bool", change: set },
  ]);
  writer.batch([
    { parameter: "bool", data: bools, dtype: "bool", change: { kind: "push", operation: mix } },
  ]);
  writer.batch([
    { parameter: "int8", data: Int8Array.of(1, 2, 3), change: { kind: "push", operation: mix } },
    { parameter: "bool", data: Uint8Array.of(0, 1, 0), dtype: "bool", change: set },
  ]);
};

/** Three trainers in steps; the last of three backups comes late, one goes and comes again. */
function stepsScene(synchronization: SynchronizationInput): Scene {
  return (writer) => {
    writer.rules(synchronization);
    const members = (revision: number, trainers: readonly string[]): void => {
      const started = revision > 1;
      writer.journal.host({ verb: "members", revision, started, trainers });
    };
    const isSync = toSynchronization(synchronization).mode === "sync";
    const gradient = (trainer: string, step: number): void => {
      const operation = { op: "grad", ...(isSync ? { step } : {}) } as const;
      writer.push({ trainer, parameter: "w", data: floats(6), operation });
      const part = { rows: [step % 3, 3] };
      writer.push({ trainer, parameter: "rows", data: floats(4), part, operation });
    };
    const adam = { optimizer: "adam", learningRate: 0.1, clipNorm: 2 } as const;
    writer.init("w", floats(6), adam);
    writer.init("rows", floats(8), { ...adam, sparse: true }, [4, 2]);
    members(1, ["alice", "bob"]);
    gradient("alice", 1);
    writer.clock("alice", 1);
    members(2, ["alice", "bob", "carol"]);
    for (let step = 1; step <= 4; step++) {
      for (const trainer of ["alice", "bob", "carol"]) {
        if (step === 1 && trainer === "alice") continue;
        if (step === 3 && trainer === "bob") {
          members(3, ["alice", "carol"]);
          continue;
        }
        gradient(trainer, step);
        writer.clock(trainer, step);
      }
      if (step === 3) members(4, ["alice", "bob", "carol"]);
    }
    gradient("dave", 5);
    gradient("alice", 7);
    gradient("bob", 5);
  };
}

/** A scene as it is recorded. */
export interface Recording {
  readonly scene: Scene;
  /** In place of those of the rules: journals stay small. */
  readonly limits?: Partial<Rules>;
}

/** Scenes under the limits of the rules. */
const SCENES: Readonly<Record<string, Scene>> = {
  ...Object.fromEntries(OPTIMIZERS.map((name, i) => [name, optimizerScene(name, i)])),
  sparse,
  "parts-and-encodings": partsAndEncodings,
  integers,
  "half-floats": halfFloats,
  "half-steps": halfSteps,
  bytes,
  "sync-mean": stepsScene({ mode: "sync", trainers: 3, backups: 0 }),
  "sync-backup": stepsScene({ mode: "sync", trainers: 2, backups: 1, reduce: "sum" }),
  ssp: stepsScene({ mode: "ssp", trainers: 3, staleness: 1 }),
  decoupled,
  refusals,
  extremes,
  "steps-sync": stepRefusals({ mode: "sync", trainers: 2, backups: 0 }),
  "steps-ssp": stepRefusals({ mode: "ssp", trainers: 2, staleness: 1 }),
  "steps-async": stepRefusals({ mode: "async" }),
  clocks,
  declarations,
  initializations,
  sessions,
  batches,
  "batch-refusals": batchRefusals,
  "batch-steps": batchSteps,
  notes,
  "rules-again": rulesAgain,
  "restored-states": restoredStates,
  "rounds-mean": roundsScene({ merge: "mean", weights: "steps" }),
  "rounds-rda": roundsScene({ late: "carry", lateDecay: 0.5 }),
  "rounds-rebase": roundsScene({ merge: "median", late: "rebase", lateVersions: 2 }),
  "rounds-median": cohortScene({ merge: "median" }),
  "rounds-trimmed": cohortScene({
    merge: "trimmed-mean",
    trim: 0.2,
    late: "carry",
    lateDivisor: "root",
  }),
  "rounds-krum": cohortScene({ merge: "krum", krumKeep: 2, krumFaults: 2 }),
  "rounds-sampled": sampledRounds,
  "round-refusals": roundRefusals,
  guards: guardsScene,
  "guarded-rounds-mean": guardedRoundsScene("mean"),
  "guarded-rounds-rda": guardedRoundsScene("rda"),
};

/** All recordings by the names of their files. */
export const RECORDINGS: Readonly<Record<string, Recording>> = {
  ...Object.fromEntries(Object.entries(SCENES).map(([name, scene]) => [name, { scene }])),
  limits: { scene: limits, limits: { shardBytesMax: 100, blocksMax: 3, trainersMax: 2 } },
  forget: { scene: forget, limits: { trainersMax: 4 } },
  "open-contributions": { scene: openContributions, limits: { keptContributionBytesMax: 4_000 } },
  "kept-contributions": { scene: keptContributions, limits: { keptContributionBytesMax: 5_000 } },
  waste: { scene: waste, limits: { rejectedMax: 3, declaredMax: 2, unreadableTrainersMax: 1 } },
};
