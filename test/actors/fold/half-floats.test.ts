// Proves that blocks of half floats are computed with as float32 and rounded once: every optimizer, mix and kind of
// update against a block of float32 whose values are rounded after each record, slots included; by rows, by parts, in
// steps and in batches. And that what is set is stored bit for bit, NaNs too.
import fc from "fast-check";
import { describe, expect, test } from "vitest";
import type { SynchronizationInput } from "../../../src/protocol/config/index.ts";
import { bytesOf, type HalfDtype } from "../../../src/protocol/dtypes.ts";
import { toHalfFloats, toNumbers } from "../../../src/protocol/encoding/half-floats.ts";
import type { PartIndex } from "../../../src/protocol/messages/parts.ts";
import type { PushOperation } from "../../../src/protocol/messages/records.ts";
import { anyPart, ascending, elementsOfPart } from "./arbitrary-parts.ts";
import type { BatchUpdate } from "./batch-payload.ts";
import { Folded, slotsOf } from "./folded.ts";
import { floats, fullConfig, OPTIMIZERS } from "./optimizer-configs.ts";

const HALVES = ["bfloat16", "float16"] as const;
const GRAD: PushOperation = { op: "grad" };
const MIX: PushOperation = { op: "mix", alpha: 0.3, beta: -1.7 };

/** Random half floats. */
function halves(dtype: HalfDtype, count: number, seed: number): Uint16Array {
  return toHalfFloats(dtype, floats("float32", count, seed) as Float32Array);
}

/** A block of half floats, and one of float32 that is rounded to these after each record. */
class Twins {
  readonly half: Folded;
  readonly full: Folded;
  readonly #dtype: HalfDtype;
  readonly #shape: readonly number[];

  constructor(
    dtype: HalfDtype,
    shape: readonly number[],
    config: unknown,
    synchronization?: SynchronizationInput,
  ) {
    this.half = new Folded(synchronization);
    this.full = new Folded(synchronization);
    this.#dtype = dtype;
    this.#shape = shape;
    const values = halves(dtype, this.count, 1);
    this.half.journal.init(values, { dtype, shape, config });
    this.full.journal.init(this.#wide(values), { shape, config });
    if (synchronization !== undefined) {
      const members = {
        verb: "members",
        revision: 1,
        started: true,
        trainers: ["alice"],
      } as const;
      for (const folded of [this.half, this.full]) folded.journal.host(members);
    }
    this.#fold();
  }

  get count(): number {
    return this.#shape.reduce((product, size) => product * size, 1);
  }

  push(values: Uint16Array, operation: PushOperation, part?: PartIndex): void {
    const options = part === undefined ? {} : { part };
    this.half.journal.push(values, operation, { ...options, dtype: this.#dtype });
    this.full.journal.push(this.#wide(values), operation, options);
    this.#fold();
  }

  /** Ends the step of a trainer. */
  clock(step: number): void {
    for (const folded of [this.half, this.full]) folded.journal.clock("alice", step);
    this.#fold();
  }

  /** Compares values and slots to the bit. */
  check(): void {
    const [block, full] = [this.half.block(), this.full.block()];
    const rounded = toHalfFloats(this.#dtype, this.#valuesOf(this.full));
    expect(Buffer.compare(block.values(), bytesOf(rounded))).toBe(0);
    const [slots, expected] = [slotsOf(block).slice(1), slotsOf(full).slice(1)];
    expect(slots.length).toBe(expected.length);
    slots.forEach((slot, i) => {
      expect([i + 1, Buffer.compare(slot, expected[i] as Uint8Array)]).toEqual([i + 1, 0]);
    });
    expect([block.version, block.updates]).toEqual([this.half.block().version, full.updates]);
  }

  #wide(values: Uint16Array): Float32Array {
    return toNumbers(this.#dtype, values) as Float32Array;
  }

  #valuesOf(folded: Folded): Float32Array {
    return new Float32Array(folded.block().values().slice().buffer);
  }

  #fold(): void {
    this.half.apply();
    this.full.apply();
    // The twin's own bytes are rounded, which no record could do without changing more.
    const rounded = this.#wide(toHalfFloats(this.#dtype, this.#valuesOf(this.full)));
    this.full.block().values().set(bytesOf(rounded));
  }
}

describe.each(HALVES)("%s", (dtype) => {
  test.each(OPTIMIZERS)("is trained by %s as float32 and rounded once", (optimizer) => {
    const twins = new Twins(dtype, [331], fullConfig(optimizer));
    for (let step = 0; step < 5; step++) {
      twins.push(halves(dtype, 331, step + 2), GRAD);
      twins.check();
    }
  });

  test.each(OPTIMIZERS.filter((name) => name !== "none"))("rows are trained by %s", (optimizer) => {
    for (const width of [1, 3, 70]) {
      const rows = 41;
      const twins = new Twins(dtype, [rows, width], fullConfig(optimizer, { sparse: true }));
      fc.assert(
        fc.property(fc.option(ascending(rows), { nil: undefined }), fc.nat(999), (list, seed) => {
          const count = (list?.length ?? rows) * width;
          twins.push(halves(dtype, count, seed), GRAD, list && { rows: list });
          twins.check();
        }),
        { numRuns: 8 },
      );
    }
  });

  test("any part is mixed", () => {
    const [rows, width] = [7, 9];
    const twins = new Twins(dtype, [rows, width], {});
    fc.assert(
      fc.property(anyPart(rows, width), fc.nat(999), (part, seed) => {
        twins.push(halves(dtype, elementsOfPart(part, width).length, seed), MIX, part);
        twins.check();
      }),
      { numRuns: 30 },
    );
  });

  test("more elements than are widened at a time are mixed and trained", () => {
    const twins = new Twins(dtype, [100_003], { optimizer: "adam", learningRate: 0.1 });
    twins.push(halves(dtype, 100_003, 2), MIX);
    twins.check();
    twins.push(halves(dtype, 100_003, 3), GRAD);
    twins.check();
    const inner = Uint32Array.from({ length: 50_000 }, (_, i) => 2 * i);
    twins.push(halves(dtype, 50_000, 4), MIX, { rows: inner });
    twins.check();
  });

  test.each([
    [[70_001], false],
    [[300, 2], true],
    [[30, 300], true],
  ] as const)("steps of %j, sparse: %s, are added up in float32", (shape, sparse) => {
    const config = { optimizer: "momentum", learningRate: 0.1, momentum: 0.9, sparse } as const;
    const twins = new Twins(dtype, shape, config, { mode: "sync", trainers: 1 });
    for (let step = 1; step <= 3; step++) {
      const part = sparse && step > 1 ? { rows: Uint32Array.of(1, 2, 29) } : undefined;
      const count = part === undefined ? twins.count : 3 * (twins.count / shape[0]);
      twins.push(halves(dtype, count, step + 5), { op: "grad", step }, part);
      twins.check();
      twins.clock(step);
      twins.check();
    }
  });

  test("a set stores every bit, and an update makes NaNs canonical", () => {
    const folded = new Folded();
    const bits = Uint16Array.from({ length: 65_536 }, (_, i) => i);
    const config = { allowNonFinite: true };
    folded.journal.init(bits, { dtype, config });
    folded.apply();
    expect(Buffer.compare(folded.block().values(), bytesOf(bits))).toBe(0);
    const reversed = bits.slice().reverse();
    folded.journal.set(reversed, { dtype });
    folded.apply();
    expect(Buffer.compare(folded.block().values(), bytesOf(reversed))).toBe(0);
    folded.journal.push(new Uint16Array(65_536), { op: "mix", alpha: 1, beta: 0 }, { dtype });
    folded.apply();
    const after = new Uint16Array(folded.block().values().slice().buffer);
    const nan = dtype === "bfloat16" ? 0x7fc0 : 0x7e00;
    const numbers = toNumbers(dtype, reversed);
    // Adding 0 · 0 makes −0 of no number but −0, which becomes +0.
    after.forEach((found, i) => {
      const number = numbers[i] as number;
      const kept = number === 0 ? 0 : (reversed[i] as number);
      if (found !== (Number.isNaN(number) ? nan : kept)) throw new Error(`element ${i}: ${found}`);
    });
  });

  test("what is not finite is refused", () => {
    for (const bits of dtype === "bfloat16" ? [0x7f80, 0xffc1] : [0x7c00, 0xfe01]) {
      const folded = new Folded();
      folded.journal.init(Uint16Array.of(1, 2), { dtype });
      folded.journal.set(Uint16Array.of(1, bits), { dtype });
      folded.journal.push(Uint16Array.of(bits, 1), MIX, { dtype });
      folded.journal.set(Uint16Array.of(3, 4), { dtype });
      const codes = folded.run().map(({ code }) => code);
      expect(codes).toEqual([undefined, "NON_FINITE", "NON_FINITE", undefined]);
    }
  });

  test("a saved state restores values and slots", () => {
    const twins = new Twins(dtype, [33], fullConfig("amsgrad"));
    twins.push(halves(dtype, 33, 2), GRAD);
    expect(twins.half.restored().digest()).toBe(twins.half.shard.digest());
  });
});

/** Small parameters that a batch changes together. */
const MODELS = OPTIMIZERS.flatMap((optimizer, i) =>
  HALVES.map((dtype) => ({ name: `${optimizer} ${dtype}`, optimizer, dtype, seed: i })),
);

test("a batch changes what its updates change as records of their own", () => {
  const count = 11;
  const [single, together] = [new Folded(), new Folded()];
  for (const { name: parameter, optimizer, dtype, seed } of MODELS) {
    for (const copy of ["a", "b"]) {
      for (const folded of [single, together]) {
        const input = { parameter: parameter + copy, dtype, config: fullConfig(optimizer) };
        folded.journal.init(halves(dtype, count, seed), input);
        folded.apply();
      }
    }
  }
  const changes: BatchUpdate["change"][] = [
    { kind: "push", operation: GRAD },
    { kind: "set" },
    { kind: "push", operation: MIX },
    { kind: "push", operation: GRAD },
  ];
  for (const [round, change] of changes.entries()) {
    // Sorted by type, so that runs are long: neighbours of one optimizer are changed together.
    const updates = [...MODELS]
      .sort((a, b) => (a.dtype < b.dtype ? -1 : 1))
      .flatMap(({ name, dtype, seed }) =>
        ["a", "b"].map((copy): BatchUpdate => {
          const data = halves(dtype, count, 40 * round + seed + copy.charCodeAt(0));
          return { parameter: name + copy, dtype, data, change };
        }),
      );
    together.journal.batch(updates);
    for (const { parameter, data, dtype } of updates) {
      const sender = { parameter, ...(dtype === undefined ? {} : { dtype }) };
      if (change.kind === "push") single.journal.push(data, change.operation, sender);
      else single.journal.set(data, sender);
    }
    together.apply();
    single.apply();
    expect(together.content()).toBe(single.content());
  }
});
