import { describe, expect, test } from "vitest";
import { Random } from "../../../../examples/digits/random.ts";
import { OPTIMIZERS, type Optimizer } from "../../../../src/protocol/config/index.ts";
import type { FloatData } from "./kernel-block.ts";
import { adoptKernels, distance, elementsOf, FLOAT_DTYPES, normOf, pairOf } from "./pair.ts";
import { PRECISIONS } from "./real.ts";

// Proves what the kernels make of numbers at the ends of the scale, against the reference: denormals,
// which may count as zero where a product with them would be denormal, infinities, NaN and both zeros;
// and that a gradient of zero means the same with either sign.

const SPECIAL = [0, -0, 1, -2.5, Number.POSITIVE_INFINITY, Number.NEGATIVE_INFINITY, Number.NaN];

/** Every special value with every special gradient. */
const VALUES = SPECIAL.flatMap((value) => SPECIAL.map(() => value));
const GRADIENTS = SPECIAL.flatMap(() => SPECIAL);

function settings(name: Optimizer["name"], penalties: object = {}) {
  return name === "none"
    ? { optimizer: name }
    : { optimizer: name, learningRate: 0.1, ...penalties };
}

/**
 * What a number is, where nothing but that is fixed; the formulas leave the sign of a zero open, and
 * the kernels raise second moments of Adam that are zero to some of the least normal numbers.
 */
function kindOf(value: number, least: number): string {
  if (Math.abs(value) <= 3 * least) return "zero";
  return Number.isFinite(value) ? "finite" : String(value);
}

/** The bits of each NaN among the elements, in hexadecimal. */
function nanBits(data: FloatData): string[] {
  const view = new DataView(data.buffer);
  return Array.from(data, (value, i) => [value, i] as const)
    .filter(([value]) => Number.isNaN(value))
    .map(([, i]) =>
      data instanceof Float32Array
        ? view.getUint32(4 * i, true).toString(16)
        : view.getBigUint64(8 * i, true).toString(16),
    );
}

describe.each(OPTIMIZERS)("%s", (name) => {
  test.each(FLOAT_DTYPES)("keeps its bounds among denormals of %s", (dtype) => {
    const random = new Random(3);
    const least = PRECISIONS[dtype].underflow;
    // From the least denormal to far above the least normal number, and past its root.
    const tiny = () =>
      Array.from(
        { length: 64 },
        (_, i) => random.normal() * least * 2 ** (i * (dtype === "float32" ? 2 : 16)),
      );
    for (const penalties of [{}, { l1: 1e-3, l2: 1e-3, gradientScale: 0.5 }]) {
      const pair = pairOf(settings(name, penalties), elementsOf(dtype, tiny()));
      for (let step = 0; step < 50; step++) {
        const gradient = elementsOf(dtype, tiny());
        pair.kernels.push(gradient, { norm: normOf(gradient) });
        pair.reference.push(gradient, { norm: normOf(gradient) });
        expect(distance(pair)).toBeLessThanOrEqual(1);
        adoptKernels(pair);
      }
    }
  });

  test.each(FLOAT_DTYPES)(
    "makes of infinities, NaN and zeros of %s what the formulas do",
    (dtype) => {
      const { leastNormal } = PRECISIONS[dtype];
      for (const penalties of [{}, { l2: 0.01 }]) {
        const pair = pairOf(settings(name, penalties), elementsOf(dtype, VALUES));
        const gradient = elementsOf(dtype, GRADIENTS);
        for (let step = 1; step <= 2; step++) {
          pair.kernels.push(gradient, { norm: 1 });
          pair.reference.push(gradient, { norm: 1 });
          for (let column = 0; column < pair.kernels.columns; column++) {
            const computed = pair.kernels.column(column);
            const label = (kind: string, i: number): string =>
              `step ${step} column ${column} p ${VALUES[i]} g ${GRADIENTS[i]}: ${kind}`;
            const expected = pair.reference
              .column(column)
              .map(({ value }, i) => label(kindOf(value, leastNormal), i));
            const kinds = Array.from(computed, (value) => kindOf(value, leastNormal));
            expect(kinds.map(label)).toEqual(expected);
            const canonical = dtype === "float32" ? "7fc00000" : "7ff8000000000000";
            expect(new Set([...nanBits(computed), canonical])).toEqual(new Set([canonical]));
          }
        }
      }
    },
  );

  test.each(FLOAT_DTYPES)(
    "keeps zeros of %s zero, whatever the sign of a zero gradient",
    (dtype) => {
      const { leastNormal } = PRECISIONS[dtype];
      const penalties = [{}, { l1: 0.1 }, { l2: 0.1 }, { gradientScale: 0.5 }];
      for (const others of name === "none" ? [{ gradientScale: 0.5 }] : penalties) {
        const trained = (zero: number): FloatData[] => {
          const { kernels } = pairOf(settings(name, others), elementsOf(dtype, [0, -0, 1]));
          for (let step = 0; step < 3; step++) {
            kernels.push(elementsOf(dtype, [zero, zero, zero]), { norm: 0 });
          }
          return Array.from({ length: kernels.columns }, (_, i) => kernels.column(i));
        };
        const [values, ...slots] = trained(0) as [FloatData, ...FloatData[]];
        // Plain addition is the exception: −0 + −0 is −0.
        if (name !== "none") expect(trained(-0)).toEqual([values, ...slots]);
        expect(values[0]).toBe(0);
        expect(Math.abs(values[1] as number)).toBe(0);
        for (const slot of slots) {
          const kinds = Array.from(slot.subarray(0, 2), (x) => kindOf(x, leastNormal));
          expect(kinds).toEqual(["zero", "zero"]);
        }
      }
    },
  );
});
