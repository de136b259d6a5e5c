// Proves that a list of rows is changed to the bit as its rows would be one record at a time, which are
// changed where they are: by every rule, in both widths, with rows of any length, update counts of
// their own, lists of more than one piece, encoded gradients, and values that are no numbers.
import fc from "fast-check";
import { describe, expect, test } from "vitest";
import {
  applyGradient,
  type GradientChange,
  halfOf,
  isFullFloat,
  mix,
} from "../../../src/actors/fold/apply-update.ts";
import { type Block, BlockActor, slotPlan } from "../../../src/actors/fold/block-actor.ts";
import { ShardMemory } from "../../../src/actors/kernel/shard-memory.ts";
import { ElementReader } from "../../../src/actors/owner/element-reader.ts";
import { type ParameterConfig, toConfig } from "../../../src/protocol/config/index.ts";
import { DTYPES, type Dtype, type HalfEncoding } from "../../../src/protocol/dtypes.ts";

import { NUMBER_DTYPES } from "../../support/elements.ts";
import { slotsOf } from "./folded.ts";
import { floats, fullConfig, OPTIMIZERS } from "./optimizer-configs.ts";

const memory = ShardMemory.create();

interface Table {
  readonly dtype: Dtype;
  readonly config: ParameterConfig;
  readonly rows: number;
  readonly width: number;
}

function blockOf({ dtype, config, rows, width }: Table): BlockActor {
  const place = { dtype, config, shape: [rows, width], start: 0, count: rows * width };
  const name = { parameter: "w", index: 0, number: 1 };
  const header = { ...place, ...name, epoch: 1, version: 1, updates: 0 };
  const block = new BlockActor(memory, header, slotPlan(place, { mode: "async" }), 0);
  const values = isFullFloat(dtype)
    ? floats(dtype, place.count, 5)
    : Uint8Array.from({ length: block.bytes }, (_, i) => Math.imul(i, 0x9e3779b1) >>> 24);
  block.values().set(new Uint8Array(values.buffer));
  return block;
}

function changeOf(
  block: BlockActor,
  rows: Uint32Array,
  bytes: Uint8Array,
  encoding?: HalfEncoding,
): GradientChange {
  return {
    kind: "gradient",
    block,
    payload: { dtype: block.dtype, encoding, bytes },
    part: { rows },
    norm: 50,
    operation: { op: "grad" },
    behind: 1,
    clip: 1,
  };
}

/** Applies the same gradient to one block at once, and to another row by row; both must be the same then. */
function applyBoth(
  [whole, single]: readonly [BlockActor, BlockActor],
  rows: Uint32Array,
  bytes: Uint8Array,
  encoding?: HalfEncoding,
): void {
  applyGradient(memory, changeOf(whole, rows, bytes, encoding));
  const rowBytes = bytes.length / rows.length;
  rows.forEach((_, i) => {
    const own = bytes.subarray(i * rowBytes, (i + 1) * rowBytes);
    applyGradient(memory, changeOf(single, rows.subarray(i, i + 1), own, encoding));
  });
  expectSame(whole, single);
}

function expectSame(whole: Block, single: Block): void {
  const [one, other] = [slotsOf(whole), slotsOf(single)];
  const differing = one.findIndex(
    (bytes, slot) => Buffer.compare(bytes, other[slot] ?? bytes) !== 0,
  );
  expect(differing).toBe(-1);
}

/** Gives rows update counts of their own, most of them different, as after a long training. */
function age(block: BlockActor): void {
  const slot = block.slotBytes(block.plan.counts ?? 0);
  const counts = new Uint32Array(slot.buffer, slot.byteOffset, block.rows.rows);
  for (let row = 0; row < counts.length; row++) {
    counts[row] = row % 97 === 0 ? 0xffffffff - (row & 1) : (row * 7919) % 60_013;
  }
}

/** About one row in `every`, ascending. */
function someRows(rows: number, every: number, seed: number): Uint32Array {
  const numbers = Array.from({ length: rows }, (_, row) => row);
  const chosen = numbers.filter((row) => ((row + seed) * 7919) % 1009 < 1009 / every);
  return Uint32Array.from(chosen.length === 0 ? [seed % rows] : chosen);
}

function bytesOf(data: { readonly buffer: ArrayBufferLike }): Uint8Array {
  return new Uint8Array(data.buffer);
}

describe.each(OPTIMIZERS)("%s", (optimizer) => {
  const config = fullConfig(optimizer, { sparse: true });

  test.each([
    ["float32", 1],
    ["float32", 3],
    ["float32", 64],
    ["float32", 65],
    ["float32", 256],
    ["float32", 257],
    ["float64", 2],
    ["float64", 32],
    ["float64", 33],
  ] as const)("changes lists of rows as row by row: %s, rows of %i", (dtype, width) => {
    const table = { dtype, config, rows: width > 8 ? 400 : 5_000, width };
    const blocks = [blockOf(table), blockOf(table)] as const;
    for (const [seed, every] of [3, 2, 7, 1].entries()) {
      const rows = someRows(table.rows, every, seed);
      applyBoth(blocks, rows, bytesOf(floats(dtype, rows.length * width, seed)));
    }
    for (const block of blocks) block.free();
  });

  test("stores one form of NaN, and changes only its rows", () => {
    const table = { dtype: "float32", config, rows: 40, width: 3 } as const;
    const blocks = [blockOf(table), blockOf(table)] as const;
    const odd = [
      Number.NaN,
      Number.POSITIVE_INFINITY,
      Number.NEGATIVE_INFINITY,
      1e-40,
      -0,
      3e38,
      1e-20,
    ];
    for (let seed = 1; seed < 5; seed++) {
      const rows = someRows(table.rows, 3, seed);
      const gradient = floats("float32", rows.length * 3, seed);
      gradient.forEach((_, i) => {
        if (i % 5 === seed) gradient[i] = odd[(i + seed) % odd.length] as number;
      });
      applyBoth(blocks, rows, bytesOf(gradient));
    }
    for (const block of blocks) block.free();
  });
});

describe.each(["adam", "adamw", "amsgrad"] as const)("%s of rows of any age", (name) => {
  const plain = { sparse: true, learningRate: 0.3 } as const;
  const optimizer = { name };

  test.each([
    ["without penalties", { ...plain, optimizer }],
    ["with decay", { ...plain, optimizer, l2: 0.02, l2Mode: "decoupled" }],
    ["with coupled L2 and L1", { ...plain, optimizer, l2: 0.02, l1: 0.01, l2Mode: "coupled" }],
    ["with a schedule", fullConfig(name, { sparse: true })],
    ["with moments that are not kept", { ...plain, optimizer: { name, beta1: 0, beta2: 0 } }],
  ] as const)("%s", (_, settings) => {
    for (const [dtype, width, isAged] of [
      ["float32", 1, true],
      ["float32", 16, true],
      ["float32", 16, false],
      ["float32", 17, true],
      ["float32", 17, false],
      ["float64", 5, true],
      ["float64", 33, false],
      ["float32", 401, true],
    ] as const) {
      const rowCount = Math.min(3_000, Math.ceil(100_000 / width));
      const table = { dtype, config: toConfig(settings), rows: rowCount, width };
      const blocks = [blockOf(table), blockOf(table)] as const;
      if (isAged) for (const block of blocks) age(block);
      for (const [seed, every] of [3, 1, 7].entries()) {
        const rows = someRows(table.rows, every, seed);
        applyBoth(blocks, rows, bytesOf(floats(dtype, rows.length * width, seed)));
      }
      for (const block of blocks) block.free();
    }
  });
});

test("any lists, one after the other", () => {
  const lists = fc.array(fc.uniqueArray(fc.nat(99), { minLength: 1, maxLength: 60 }), {
    maxLength: 6,
  });
  fc.assert(
    fc.property(lists, fc.integer({ min: 1, max: 9 }), (named, width) => {
      const config = fullConfig("adam", { sparse: true });
      const table = { dtype: "float32", config, rows: 100, width } as const;
      const blocks = [blockOf(table), blockOf(table)] as const;
      for (const [seed, list] of named.entries()) {
        const rows = Uint32Array.from(list).sort();
        applyBoth(blocks, rows, bytesOf(floats("float32", rows.length * width, seed)));
      }
      for (const block of blocks) block.free();
    }),
    { numRuns: 30 },
  );
});

test.each(["bfloat16", "float16"] as const)("gradients encoded as %s", (encoding) => {
  const config = fullConfig("rmsprop", { sparse: true });
  const table = { dtype: "float32", config, rows: 5_000, width: 5 } as const;
  const blocks = [blockOf(table), blockOf(table)] as const;
  const rows = someRows(table.rows, 2, 1);
  const bits = Uint16Array.from({ length: rows.length * 5 }, (_, i) => (i * 40_503) & 0xbfff);
  applyBoth(blocks, rows, bytesOf(bits), encoding);
  for (const block of blocks) block.free();
});

test.each(
  NUMBER_DTYPES.flatMap(
    (dtype) =>
      [
        [dtype, 3],
        [dtype, 65],
      ] as const,
  ),
)("mixes rows of %s, %i elements long, and reads them", (dtype, width) => {
  const { bytes: elementBytes, float } = DTYPES[dtype];
  const config = toConfig({ optimizer: "none", sparse: true });
  const table = { dtype, config, rows: 5_000, width };
  const [whole, single] = [blockOf(table), blockOf(table)];
  const rows = someRows(table.rows, 3, 1);
  const elements = rows.length * width;
  const incoming = isFullFloat(dtype)
    ? bytesOf(floats(dtype, elements, 2))
    : Uint8Array.from({ length: elements * elementBytes }, (_, i) => i * 37);
  const mixRows = (block: BlockActor, part: Uint32Array, bytes: Uint8Array): void => {
    const { pointer } = block;
    const half = halfOf(dtype);
    const computedBytes = half === undefined ? elementBytes : 4;
    const place = { rows: block.rows, part: { rows: part }, columns: [pointer] };
    const target = { ...place, elementBytes: computedBytes, half };
    mix(memory, target, { dtype, bytes }, 0.5, 2);
  };
  mixRows(whole, rows, incoming);
  const rowBytes = width * elementBytes;
  rows.forEach((_, i) => {
    const own = incoming.subarray(i * rowBytes, (i + 1) * rowBytes);
    mixRows(single, rows.subarray(i, i + 1), own);
  });
  expectSame(whole, single);
  if (!float) applyBoth([whole, single], rows, incoming);
  const read = new Uint8Array(rows.length * rowBytes);
  new ElementReader(memory, whole, { part: { rows } }).read(read);
  const wanted = [...rows].map((row) =>
    single.values().slice(row * rowBytes, (row + 1) * rowBytes),
  );
  expect(Buffer.compare(read, Buffer.concat(wanted))).toBe(0);
  for (const block of [whole, single]) block.free();
});
