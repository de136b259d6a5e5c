import type { PlannedParameter } from "../../../src/client/part-plan.ts";
import { blockPlace } from "../../../src/protocol/layout.ts";
import { blockRows, type PartIndex } from "../../../src/protocol/messages/parts.ts";

/** Element numbers of a parameter at the product of index lists, in C order: one by one. */
export function elementsAt(
  shape: readonly number[],
  indices: readonly (readonly number[])[],
): number[] {
  let elements = [0];
  shape.forEach((size, axis) => {
    elements = elements.flatMap((element) =>
      (indices[axis] ?? []).map((index) => element * size + (index < 0 ? index + size : index)),
    );
  });
  return elements;
}

/** Element numbers of the parameter that an index means of a block, as protocol.md says. */
export function elementsOf(
  { shape, layout }: PlannedParameter,
  block: number,
  index: PartIndex | undefined,
): number[] {
  const { start, count } = blockPlace(layout, block);
  if (index === undefined) return Array.from({ length: count }, (_, i) => start + i);
  const { rows, rowElements } = blockRows({ shape, start, count });
  const inner = index.inner ?? Uint32Array.from({ length: rowElements }, (_, i) => i);
  for (const [numbers, below] of [
    [index.rows, rows],
    [inner, rowElements],
  ] as const) {
    numbers.forEach((number, i) => {
      if (number >= below || (i > 0 && number <= (numbers[i - 1] ?? 0))) {
        throw new Error(`not ascending below ${below}: ${numbers}`);
      }
    });
  }
  return [...index.rows].flatMap((row) =>
    [...inner].map((offset) => start + row * rowElements + offset),
  );
}
