import fc from "fast-check";
import {
  type Synchronization,
  type SynchronizationInput,
  toSynchronization,
} from "../../src/protocol/config/index.ts";
import { type Encoding, type HalfDtype, isHalf } from "../../src/protocol/dtypes.ts";
import { toHalfFloats } from "../../src/protocol/encoding/half-floats.ts";
import { Folded } from "../actors/fold/folded.ts";
import type { JournalWriter } from "../actors/fold/journal-writer.ts";
import { FoldedHistory } from "./folded-history.ts";

const ELEMENTS = 6;
const TRAINERS = ["alice", "bob"] as const;
const OPTIMIZERS = ["sgd", "adam", { name: "momentum", momentum: 0.9 }, "none"] as const;

type Float = "float32" | HalfDtype;

/** What a trainer does next. */
export interface Act {
  readonly trainer: (typeof TRAINERS)[number];
  readonly parameter: "w" | "b";
  readonly kind: "gradient" | "mix" | "set" | "clock" | "batch" | "set-batch";
  readonly values: readonly number[];
  /** Encoding of a gradient or a mix of float32; half floats have none. */
  readonly encoding?: Encoding | undefined;
}

/** A job's settings and what its trainers do. */
export interface Training {
  readonly mode: SynchronizationInput;
  readonly optimizer: (typeof OPTIMIZERS)[number];
  /** Element type of the parameters; float32 if absent. */
  readonly dtype?: Float;
  readonly acts: readonly Act[];
}

const act: fc.Arbitrary<Act> = fc.record({
  trainer: fc.constantFrom(...TRAINERS),
  parameter: fc.constantFrom("w", "b"),
  kind: fc.constantFrom(
    ...(["gradient", "gradient", "gradient", "mix", "set", "clock", "batch", "set-batch"] as const),
  ),
  values: fc.array(fc.float({ min: -4, max: 4, noNaN: true }), {
    minLength: ELEMENTS,
    maxLength: ELEMENTS,
  }),
  encoding: fc.constantFrom(undefined, undefined, "bfloat16", "int8", "e3m0"),
});

/** Trainings of two trainers, two parameters and any of some optimizers, in step or not. */
export const trainings: fc.Arbitrary<Training> = fc.record({
  mode: fc.constantFrom<SynchronizationInput>("async", { mode: "sync", trainers: 2 }),
  optimizer: fc.constantFrom(...OPTIMIZERS),
  dtype: fc.constantFrom<Float>("float32", "float32", "bfloat16", "float16"),
  acts: fc.array(act, { minLength: 5, maxLength: 40 }),
});

/** The history of a training; its parameters are `w` and `b`, of six elements each. */
export function historyOf({ mode, optimizer, dtype = "float32", acts }: Training): FoldedHistory {
  const { journal } = new Folded(mode);
  const synchronization: Synchronization = toSynchronization(mode);
  const inSteps = synchronization.mode === "sync";
  if (inSteps)
    journal.host({ verb: "members", revision: 1, started: true, trainers: [...TRAINERS] });
  const config = { optimizer, ...(optimizer === "none" ? {} : { learningRate: 0.1 }) };
  for (const parameter of ["w", "b"]) {
    journal.init(dataOf(dtype, Array(ELEMENTS).fill(1)), { parameter, dtype, config });
  }
  const steps = { alice: 1, bob: 1 };
  for (const each of acts) write(journal, each, dtype, { steps, inSteps });
  return new FoldedHistory(journal.records, synchronization);
}

function dataOf(dtype: Float, values: readonly number[]): Float32Array | Uint16Array {
  const floats = Float32Array.from(values);
  return isHalf(dtype) ? toHalfFloats(dtype, floats) : floats;
}

/** Where each trainer is, in a job with steps. */
interface Steps {
  readonly steps: Record<Act["trainer"], number>;
  readonly inSteps: boolean;
}

function write(
  journal: JournalWriter,
  { trainer, parameter, kind, values, encoding }: Act,
  dtype: Float,
  { steps, inSteps }: Steps,
): void {
  const data = dataOf(dtype, values);
  const sender = { trainer, parameter, dtype };
  const step = inSteps ? { step: steps[trainer] } : {};
  const operation = { op: "grad", ...step } as const;
  const encoded = encoding === undefined || isHalf(dtype) ? {} : { encoding };
  if (kind === "gradient") journal.push(data, operation, { ...sender, ...encoded });
  else if (kind === "mix") {
    const mix = { op: "mix", alpha: 0.5, beta: 0.5 } as const;
    journal.push(data, mix, { ...sender, ...encoded });
  } else if (kind === "set") journal.set(data, sender);
  else if (kind === "batch") {
    const updates = ["b", "w"].map(
      (name) =>
        ({
          parameter: name,
          data,
          dtype,
          change: { kind: "push", operation, ...encoded },
        }) as const,
    );
    journal.batch(updates, { trainer });
  } else if (kind === "set-batch") {
    const push = { kind: "push", operation, ...encoded } as const;
    const updates = [
      { parameter: "b", data, dtype, change: push },
      { parameter: "w", data, dtype, change: { kind: "set" } },
    ] as const;
    journal.batch(updates, { trainer });
  } else if (inSteps) {
    journal.clock(trainer, steps[trainer]);
    steps[trainer] += 1;
  }
}
