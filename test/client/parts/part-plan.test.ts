// Proves the arithmetic of parts against counting one by one, for random shapes, cuts and lists, and
// against what numpy made of the same arrays. The test plays the hosts: it holds the parameter.
import fc from "fast-check";
import { describe, expect, test } from "vitest";
import {
  gatherPart,
  type PartPlan,
  type PlannedParameter,
  planPart,
  scatterPart,
  slicePart,
} from "../../../src/client/part-plan.ts";

import {
  allocateData,
  DTYPES,
  type Dtype,
  sameArray,
  type TensorData,
} from "../../../src/protocol/dtypes.ts";
import type { Layout } from "../../../src/protocol/layout.ts";
import { partCounts, partIndexBytes } from "../../../src/protocol/messages/parts.ts";
import { elementCount } from "../../../src/protocol/tensor.ts";
import { NUMPY_DTYPES, type NumpyArray, numpyArrays } from "../../support/numpy-parts.ts";
import { elementsAt, elementsOf } from "./part-reference.ts";

const dtypes = Object.keys(DTYPES) as Dtype[];

const upTo = (length: number): number[] => Array.from({ length }, (_, i) => i);

type Element = number | bigint;

/** Elements of any type, to be read and written one by one. */
function writable(data: TensorData): Record<number, Element> {
  return data;
}

/** Cut between rows, into blocks of so many; or within rows, into blocks of so many elements. */
function cutOf(
  shape: readonly number[],
  { rows, elements }: { rows?: number; elements?: number },
): PlannedParameter {
  const total = elementCount(shape);
  const rowElements = total / (shape[0] ?? 1);
  const blockElements = Math.min(total, elements ?? (rows ?? 1) * rowElements);
  const blocks = Math.ceil(total / blockElements);
  const layout: Layout = { elements: total, blockElements, blocks, firstShard: 0, shards: 3 };
  return { name: "p", shape, layout };
}

const cuts: fc.Arbitrary<PlannedParameter> = fc
  .array(fc.integer({ min: 1, max: 5 }), { maxLength: 4 })
  .chain((shape) => {
    const rowElements = elementCount(shape) / (shape[0] ?? 1);
    const between = fc.integer({ min: 1, max: 5 }).map((rows) => cutOf(shape, { rows }));
    if (rowElements === 1) return between;
    const within = fc
      .integer({ min: 1, max: rowElements - 1 })
      .map((elements) => cutOf(shape, { elements }));
    return fc.oneof(between, within);
  });

const cases = cuts.chain((cut) =>
  fc.record({
    cut: fc.constant(cut),
    indices: fc.tuple(
      ...cut.shape.map((size) =>
        fc.oneof(
          fc.constant(upTo(size)),
          fc.array(fc.integer({ min: -size, max: size - 1 }), { maxLength: 7 }),
        ),
      ),
    ),
  }),
);

function counting(dtype: Dtype, elements: number): TensorData {
  const data = allocateData(dtype, elements);
  const isWide = data instanceof BigInt64Array || data instanceof BigUint64Array;
  // Bits, of half floats too: elements are only moved.
  for (let i = 0; i < elements; i++) writable(data)[i] = isWide ? BigInt(i) : i;
  return data;
}

/** An array of zeros of the same class. */
function like(data: TensorData, elements: number): TensorData {
  return sameArray(data, new ArrayBuffer(elements * data.BYTES_PER_ELEMENT), elements);
}

function pick(data: TensorData, elements: readonly number[]): TensorData {
  const picked = like(data, elements.length);
  elements.forEach((element, i) => {
    writable(picked)[i] = writable(data)[element] ?? 0;
  });
  return picked;
}

function pull(cut: PlannedParameter, plan: PartPlan, values: TensorData): TensorData {
  const result = like(values, plan.elements);
  for (const part of plan.blocks) {
    const message = pick(values, elementsOf(cut, part.place.index, part.index));
    expect(message.length).toBe(part.messageRows * part.messageRowElements);
    if (part.tensorStart === undefined) scatterPart(part, message, result);
    else result.set(message as never, part.tensorStart);
  }
  return result;
}

function push(
  cut: PlannedParameter,
  plan: PartPlan,
  values: TensorData,
  tensor: TensorData,
  bytesMax: number,
  mixed: (old: Element, given: Element) => Element,
): void {
  const elementBytes = values.BYTES_PER_ELEMENT;
  for (const part of plan.blocks) {
    for (const slice of slicePart(part, elementBytes, bytesMax)) {
      const message = gatherPart(slice, tensor);
      const elements = elementsOf(cut, part.place.index, slice.index);
      expect(message.length).toBe(elements.length);
      expect(slice.elements).toBe(elements.length);
      if (slice.index !== undefined) {
        const bytes = partIndexBytes(partCounts(slice.index)) + message.byteLength;
        expect(bytes).toBeLessThanOrEqual(bytesMax);
      }
      elements.forEach((element, i) => {
        const old = writable(values)[element] ?? 0;
        writable(values)[element] = mixed(old, writable(message)[i] ?? 0);
      });
    }
  }
}

describe("a plan", () => {
  test("pulls what counting one by one gives, in any order, with repeats", () => {
    fc.assert(
      fc.property(cases, fc.constantFrom(...dtypes), ({ cut, indices }, dtype) => {
        const values = counting(dtype, cut.layout.elements);
        const plan = planPart(cut, indices);
        expect(plan.shape).toEqual(indices.map((list) => list.length));
        expect(pull(cut, plan, values)).toEqual(pick(values, elementsAt(cut.shape, indices)));
      }),
      { numRuns: 500 },
    );
  });

  test("pushes each named element once, the last one given for it, in messages that fit", () => {
    fc.assert(
      fc.property(
        cases,
        fc.constantFrom(...dtypes),
        fc.oneof(fc.constant(Number.POSITIVE_INFINITY), fc.integer({ min: 48, max: 200 })),
        ({ cut, indices }, dtype, bytesMax) => {
          const named = elementsAt(cut.shape, indices);
          const values = allocateData(dtype, cut.layout.elements);
          const tensor = counting(dtype, named.length);
          let sent = 0;
          const expected = allocateData(dtype, cut.layout.elements);
          named.forEach((element, i) => {
            writable(expected)[element] = writable(tensor)[i] ?? 0;
          });
          push(cut, planPart(cut, indices), values, tensor, bytesMax, (_old, given) => {
            sent += 1;
            return given;
          });
          expect(values).toEqual(expected);
          expect(sent).toBe(new Set(named).size);
        },
      ),
      {
        numRuns: 500,
        // Rows that lie in the tensor as they travel, but are too wide for a message.
        examples: [
          [{ cut: cutOf([3, 20], { rows: 3 }), indices: [[0, 1], upTo(20)] }, "int32", 48],
        ],
      },
    );
  });

  test("touches only the blocks that have a named element", () => {
    fc.assert(
      fc.property(cases, ({ cut, indices }) => {
        const { blockElements } = cut.layout;
        const blocks = elementsAt(cut.shape, indices).map((each) =>
          Math.floor(each / blockElements),
        );
        const expected = [...new Set(blocks)].sort((a, b) => a - b);
        expect(planPart(cut, indices).blocks.map(({ place }) => place.index)).toEqual(expected);
      }),
    );
  });

  test("sends no numbers where a whole block is named", () => {
    const [block] = planPart(cutOf([4, 2], { rows: 2 }), [
      [3, 2, 2],
      [1, 0],
    ]).blocks;
    expect(block).toMatchObject({ place: { index: 1 }, index: undefined, tensorStart: undefined });
    const [straight] = planPart(cutOf([4, 2], { rows: 2 }), [
      [2, 3],
      [0, 1],
    ]).blocks;
    expect(straight).toMatchObject({ index: undefined, tensorStart: 0 });
  });

  test.each([
    ["too few lists", [[0]], "one list of indices for each of 2 dimensions; received 1"],
    ["no lists", undefined, "received undefined"],
    ["a fraction", [[0], [0.5]], "dimension 1: expected whole numbers from -3 to 2; received 0.5"],
    ["text", [["0"], [0]], "dimension 0: expected whole numbers from -2 to 1; received 0"],
    ["a number in place of a list", [0, [0]], "a list of whole numbers; received number"],
  ])("refuses %s", (_what, indices, message) => {
    const refused = (): unknown => planPart(cutOf([2, 3], {}), indices as never);
    expect(refused).toThrowError(expect.objectContaining({ code: "BAD_INDEX" }));
    expect(refused).toThrowError(message);
  });

  test("refuses more elements than an array can have, before it makes one", () => {
    const list = new Int32Array(70_000);
    expect(() => planPart(cutOf([1, 1], {}), [list, list])).toThrowError(
      expect.objectContaining({ code: "TOO_LARGE" }),
    );
  });
});

describe.each(NUMPY_DTYPES)("numpy's %s", (dtype) => {
  const cutsOf = ({ shape }: NumpyArray): PlannedParameter[] => [
    cutOf(shape, { rows: shape[0] ?? 1 }),
    cutOf(shape, { rows: 2 }),
    ...(shape.length > 1 ? [cutOf(shape, { elements: 3 })] : []),
  ];

  test.each(numpyArrays(dtype))("arrays of shape $shape", (array) => {
    expect(array.cases.length).toBeGreaterThan(8);
    for (const cut of cutsOf(array)) {
      for (const each of array.cases) {
        const plan = planPart(cut, each.indices);
        expect(plan.shape, each.name).toEqual(each.pulledShape);
        expect(pull(cut, plan, array.array), each.name).toEqual(each.pulled);
        const values = array.array.slice();
        push(cut, plan, values, each.new, 100, (old, given) => mixed(each, old, given));
        expect(values, each.name).toEqual(each.pushed);
      }
      for (const { indices, name } of array.refused) {
        expect(() => planPart(cut, indices), name).toThrowError(
          expect.objectContaining({ code: "BAD_INDEX" }),
        );
      }
    }
  });

  function mixed(
    { alpha, beta }: { alpha: number; beta: number },
    old: Element,
    given: Element,
  ): Element {
    if (typeof old === "bigint") return BigInt(alpha) * old + BigInt(beta) * BigInt(given);
    const round = dtype === "float32" ? Math.fround : Number;
    const [a, b] = [round(alpha), round(beta)];
    return round(round(a * old) + round(b * Number(given)));
  }
});
