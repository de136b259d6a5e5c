// Proves what gradients of some rows do: each row is updated as if it were a tensor of its own that has
// had only its own gradients, whatever rows came with it, in whichever order and cut; rows that are
// not named keep values, slots and counts. Dense gradients of a sparse parameter name every row.
import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { ShardMemory } from "../../../src/actors/kernel/shard-memory.ts";
import { type ParameterConfig, toConfig } from "../../../src/protocol/config/index.ts";
import { bytesOf } from "../../../src/protocol/dtypes.ts";
import { l2Norm } from "../../../src/protocol/tensor.ts";
import { ascending } from "./arbitrary-parts.ts";
import { elementsOf, Folded, slotsOf } from "./folded.ts";
import { fullConfig, OPTIMIZERS } from "./optimizer-configs.ts";
import { KernelBlock } from "./reference/kernel-block.ts";

const memory = ShardMemory.create();
const ROWS = 7;

interface Sparse {
  readonly folded: Folded;
  /** One tensor for each row. */
  readonly plain: readonly KernelBlock[];
  /** Updates of each row. */
  readonly counts: number[];
  readonly width: number;
}

function sparse(config: ParameterConfig, rows: number, width: number): Sparse {
  const folded = new Folded();
  const values = Float32Array.from({ length: rows * width }, (_, i) => (i % 17) / 8 - 1);
  folded.journal.init(values, { config, shape: [rows, width] });
  const plain = Array.from(
    { length: rows },
    (_, row) => new KernelBlock(config, values.slice(row * width, (row + 1) * width), memory),
  );
  return { folded, plain, counts: new Array<number>(rows).fill(0), width };
}

/** Pushes rows, or all of them, and updates the tensors of these rows. */
function push(
  { folded, plain, counts, width }: Sparse,
  rows: Uint32Array | undefined,
  seed: number,
): void {
  const named = rows ?? Uint32Array.from(plain.keys());
  const gradient = Float32Array.from(
    { length: named.length * width },
    (_, i) => (((i + seed * 31) * 7919) % 101) / 25 - 2,
  );
  const part = rows === undefined ? {} : { part: { rows } };
  folded.journal.push(gradient, { op: "grad" }, part);
  const norm = l2Norm(gradient);
  for (const [i, row] of named.entries()) {
    const of = gradient.slice(i * width, (i + 1) * width);
    plain[row]?.push(of, { norm });
    counts[row] = (counts[row] ?? 0) + 1;
  }
}

function expectEqual({ folded, plain, counts }: Sparse): void {
  folded.apply();
  const block = folded.block();
  const slots = slotsOf(block);
  for (let slot = 0; slot < slots.length - 1; slot++) {
    const wanted = Buffer.concat(plain.map((row) => bytesOf(row.column(slot))));
    expect([slot, Buffer.compare(slots[slot] as Uint8Array, wanted)]).toEqual([slot, 0]);
  }
  expect([...elementsOf(slots.at(-1) as Uint8Array<ArrayBuffer>, Uint32Array)]).toEqual(counts);
}

describe.each(OPTIMIZERS)("%s", (optimizer) => {
  test("updates each row as a tensor of its own", () => {
    const pushes = fc.array(fc.option(ascending(ROWS), { nil: undefined }), { maxLength: 8 });
    fc.assert(
      fc.property(pushes, fc.integer({ min: 1, max: 6 }), (list, width) => {
        const state = sparse(fullConfig(optimizer, { sparse: true }), ROWS, width);
        for (const [seed, rows] of list.entries()) push(state, rows, seed);
        expectEqual(state);
      }),
      { numRuns: 15 },
    );
  });
});

test("rows that are longer than a chunk, and many that are shorter, come out alike", () => {
  const config = fullConfig("adam", { sparse: true });
  for (const [rows, width] of [
    [3, 20_001],
    [20_001, 3],
  ] as const) {
    const state = sparse(config, rows, width);
    push(state, Uint32Array.of(0, rows - 1), 1);
    push(state, undefined, 2);
    push(state, Uint32Array.of(1, rows - 1), 3);
    expectEqual(state);
  }
});

test("a parameter without a row axis is one row", () => {
  const folded = new Folded();
  folded.journal.init(Float64Array.of(1), {
    config: toConfig({ sparse: true, learningRate: 0.5 }),
    shape: [],
  });
  folded.journal.push(Float64Array.of(1), { op: "grad" }, { part: { rows: Uint32Array.of(0) } });
  folded.apply();
  const [values, counts] = slotsOf(folded.block());
  expect(elementsOf(values as Uint8Array<ArrayBuffer>, Float64Array)[0]).toBe(0.5);
  expect(elementsOf(counts as Uint8Array<ArrayBuffer>, Uint32Array)[0]).toBe(1);
});

test("a row that has had 2^32 - 1 updates counts every further one as this one", () => {
  const state = sparse(toConfig({ sparse: true, learningRate: 0.5 }), 2, 1);
  state.folded.apply();
  const counts = slotsOf(state.folded.block())[1] as Uint8Array<ArrayBuffer>;
  new Uint32Array(counts.buffer, counts.byteOffset, 2).fill(0xfffffffe, 1);
  push(state, Uint32Array.of(1), 1);
  push(state, Uint32Array.of(0, 1), 1);
  state.counts[1] = 0xffffffff;
  expectEqual(state);
});

test("rows of integers are added", () => {
  const folded = new Folded();
  const config = toConfig({ optimizer: "none", sparse: true });
  folded.journal.init(Int32Array.of(1, 2, 3, 4, 5, 2 ** 31 - 1), { config, shape: [3, 2] });
  folded.journal.push(
    Int32Array.of(10, 20, 30, 40),
    { op: "grad" },
    { part: { rows: Uint32Array.of(0, 2) } },
  );
  folded.apply();
  const [values, counts] = slotsOf(folded.block()).map((bytes) => elementsOf(bytes, Int32Array));
  expect([...(values ?? [])]).toEqual([11, 22, 3, 4, 35, -(2 ** 31) + 39]);
  expect([...(counts ?? [])]).toEqual([1, 0, 1]);
});
