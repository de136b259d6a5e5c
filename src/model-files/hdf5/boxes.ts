/** Elements of a tensor from `begin` to before `end` in each dimension; consecutive ones in C order. */
export interface Box {
  readonly begin: readonly number[];
  readonly end: readonly number[];
  readonly elements: number;
}

/**
 * Lengths of the boxes that a tensor is cut into: 1 in the first dimensions, then as much of one
 * dimension as `elementsMax` allows, in equal parts, then all of the others.
 */
export function boxShape(shape: readonly number[], elementsMax: number): number[] {
  const box = [...shape];
  let inner = 1;
  for (let axis = shape.length - 1; axis >= 0; axis--) {
    const size = shape[axis] ?? 1;
    const fitting = Math.max(1, Math.floor(elementsMax / inner));
    if (size > fitting) {
      box[axis] = Math.ceil(size / Math.ceil(size / fitting));
      return box.fill(1, 0, axis);
    }
    inner *= size;
  }
  return box;
}

/** Cuts a tensor into boxes of at most `elementsMax` elements, in C order; none if it is empty. */
export function* boxes(
  shape: readonly number[],
  elementsMax: number,
): Generator<Box, void, undefined> {
  if (shape.includes(0)) return;
  const lengths = boxShape(shape, elementsMax);
  const begin = shape.map(() => 0);
  for (;;) {
    const end = begin.map((first, axis) =>
      Math.min(first + (lengths[axis] ?? 1), shape[axis] ?? 1),
    );
    const elements = begin.reduce((product, first, i) => product * ((end[i] ?? 0) - first), 1);
    yield { begin: [...begin], end, elements };
    let axis = shape.length - 1;
    for (; axis >= 0; axis--) {
      const next = (begin[axis] ?? 0) + (lengths[axis] ?? 1);
      begin[axis] = next < (shape[axis] ?? 1) ? next : 0;
      if (begin[axis] !== 0) break;
    }
    if (axis < 0) return;
  }
}
