import fc from "fast-check";
import type { PartIndex } from "../../../src/protocol/messages/parts.ts";

/** Ascending numbers below a limit, at least one. */
export function ascending(below: number): fc.Arbitrary<Uint32Array> {
  return fc
    .uniqueArray(fc.nat(below - 1), { minLength: 1, maxLength: below })
    .map((list) => Uint32Array.from(list).sort());
}

/** Any part of a block of rows: some rows, and of these all elements or some. */
export function anyPart(rows: number, rowElements: number): fc.Arbitrary<PartIndex> {
  return fc.record(
    { rows: ascending(rows), inner: ascending(rowElements) },
    { requiredKeys: ["rows"] },
  );
}

/** The elements of a part, numbered within the block, in the order of its tensor bytes. */
export function elementsOfPart({ rows, inner }: PartIndex, rowElements: number): number[] {
  const offsets = inner ?? Uint32Array.from({ length: rowElements }, (_, i) => i);
  return [...rows].flatMap((row) => [...offsets].map((offset) => row * rowElements + offset));
}
