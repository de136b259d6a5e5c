// Proves that pushes compute what the formulas say, bit for bit, for every element type and for
// lengths around the chunks in which tensor bytes reach the shard's memory. The references are plain
// JavaScript: Math.fround rounds as f32 does, and one rounding follows each operation.
import { describe, expect, test } from "vitest";
import { Shard } from "../../../src/actors/fold/shard.ts";
import {
  allocateData,
  bytesOf,
  DTYPES,
  type Dtype,
  isHalf,
  type TensorData,
} from "../../../src/protocol/dtypes.ts";
import type { PushOperation } from "../../../src/protocol/messages/records.ts";
import { NUMBER_DTYPES } from "../../support/elements.ts";
import { JournalWriter, SHARD, SUBJECTS } from "./journal-writer.ts";

const SCRATCH_BYTES = 256 * 1024;
/** Half floats are computed as float32, which half-floats.test.ts proves. */
const dtypes = NUMBER_DTYPES.filter((dtype) => !isHalf(dtype));
const rates = [
  [1, 1],
  [0.1, -0.7],
  [0, 2.5],
  [-1, 1e6],
] as const;

/** Elements with fractions where the type has them, of both signs where it has those. */
function elements(dtype: Dtype, count: number, seed: number): TensorData {
  const data = allocateData(dtype, count);
  for (let i = 0; i < count; i++) {
    const value = (((i + 1) * 2654435761 + seed * 40503) % 20_011) - 10_000;
    if (data instanceof BigInt64Array) data[i] = BigInt(value) * 1_000_003n;
    else if (data instanceof BigUint64Array) data[i] = BigInt(Math.abs(value)) * 1_000_003n;
    else if (data instanceof Uint32Array) data[i] = Math.abs(value) * 7;
    else if (dtype === "uint8" || dtype === "int8") data[i] = value;
    else data[i] = DTYPES[dtype].float ? value / 37 : value;
  }
  return data;
}

/** A float64 cut to an integer type: toward zero, held at the ends of its range. */
function cut(value: number, bits: 8 | 32 | 64, signed: boolean): bigint {
  if (Number.isNaN(value)) return 0n;
  const low = signed ? -(2n ** BigInt(bits - 1)) : 0n;
  const high = 2n ** BigInt(signed ? bits - 1 : bits) - 1n;
  if (value <= Number(low)) return low;
  if (value >= Number(high)) return high;
  return BigInt(Math.trunc(value));
}

function mixed(dtype: Dtype, value: number, piece: number, a: number, b: number): number | bigint {
  const { fround } = Math;
  switch (dtype) {
    case "float32":
      return fround(fround(fround(a) * value) + fround(fround(b) * piece));
    case "float64":
      return a * value + b * piece;
    case "int32":
    case "uint32":
      return Number(cut(a * value + b * piece, 32, dtype === "int32"));
    case "int8":
    case "uint8":
      return Number(cut(a * value + b * piece, 8, dtype === "int8"));
    default:
      return cut(a * value + b * piece, 64, dtype === "int64");
  }
}

/** The block's bytes after an init and one push, the payload lying at an odd address. */
function afterPush(
  values: TensorData,
  piece: TensorData,
  operation: PushOperation,
): { bytes: Uint8Array; version: number; updates: number } {
  const journal = new JournalWriter();
  const shard = Shard.create({ subjects: SUBJECTS, shard: SHARD });
  journal.host({ verb: "rules", rules: 1 });
  journal.init(values);
  journal.push(piece, operation);
  for (const record of journal.records) {
    const shifted = new Uint8Array(record.payload.length + 1).subarray(1);
    shifted.set(record.payload);
    const settled = shard.apply({ ...record, payload: shifted });
    if (settled?.outcome.code !== undefined) throw new Error(settled.outcome.message);
  }
  const block = shard.block("w", 0);
  if (block === undefined) throw new Error("no block");
  return { bytes: block.values().slice(), version: block.version, updates: block.updates };
}

function expected(values: TensorData, at: (index: number) => number | bigint): Uint8Array {
  const result = values.slice();
  for (let i = 0; i < result.length; i++) (result as { [i: number]: number | bigint })[i] = at(i);
  return bytesOf(result);
}

function lengthsFor(dtype: Dtype): number[] {
  const chunk = SCRATCH_BYTES / DTYPES[dtype].bytes;
  return [1, 3, 17, chunk, chunk + 1, 2 * chunk + 5];
}

describe.each(dtypes)("%s", (dtype) => {
  test.each(lengthsFor(dtype))("mixes %d elements", (count) => {
    const values = elements(dtype, count, 1);
    const piece = elements(dtype, count, 2);
    for (const [alpha, beta] of count > 17 ? rates.slice(0, 2) : rates) {
      const after = afterPush(values, piece, { op: "mix", alpha, beta });
      const wanted = expected(values, (i) =>
        mixed(dtype, Number(values[i]), Number(piece[i]), alpha, beta),
      );
      expect(Buffer.compare(after.bytes, wanted)).toBe(0);
      expect(after).toMatchObject({ version: 2, updates: 0 });
    }
  });
});

describe.each(["float32", "float64"] as const)("%s", (dtype) => {
  test.each(lengthsFor(dtype))("descends over %d elements", (count) => {
    const values = elements(dtype, count, 3);
    const gradient = elements(dtype, count, 4);
    const round = dtype === "float32" ? Math.fround : (value: number) => value;
    const after = afterPush(values, gradient, { op: "grad", lr: 0.01 });
    const wanted = expected(values, (i) =>
      round(Number(values[i]) - round(round(0.01) * Number(gradient[i]))),
    );
    expect(Buffer.compare(after.bytes, wanted)).toBe(0);
    expect(after).toMatchObject({ version: 2, updates: 1 });
  });
});
