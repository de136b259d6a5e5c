import { describe, expect, test } from "vitest";
import { Random } from "../../../../examples/digits/random.ts";
import { gradientScale } from "../../../../src/actors/fold/update-rule.ts";
import { type ParameterSettings, toConfig } from "../../../../src/protocol/config/index.ts";
import { decodeElements, encodeElements } from "../../../../src/protocol/encoding/encoding.ts";
import { referenceScale } from "./block.ts";
import { referenceDecode } from "./encodings.ts";
import { elementsOf, FLOAT_DTYPES, normOf, pairOf } from "./pair.ts";

// Proves what becomes of a gradient before its rule, against the definition: its scale, clipping by the
// norm of the whole gradient, clipping of each element; and that encoded gradients are what their bits say.

const SETTINGS: readonly ParameterSettings[] = [
  {},
  { gradientScale: 0.25 },
  { gradientScale: -3 },
  { gradientScale: 0 },
  { clipNorm: 1 },
  { clipNorm: 1, gradientScale: 0.25 },
  { clipNorm: 1, gradientScale: -0.25 },
  { clipNorm: 1e-6, gradientScale: 1e6 },
];

describe.each(SETTINGS)("%o", (settings) => {
  test("scales gradients of every norm as defined", () => {
    const config = toConfig(settings);
    for (const norm of [0, 1e-100, 0.5, 1, 1.0000001, 3.9, 4, 4.1, 1e6, 1e100]) {
      const expected = referenceScale(config, norm);
      const scale = gradientScale(config, norm);
      expect(Math.abs(scale - expected)).toBeLessThanOrEqual(2 ** -51 * Math.abs(expected));
      const { clipNorm } = config;
      if (clipNorm !== undefined)
        expect(norm * Math.abs(scale)).toBeLessThanOrEqual(clipNorm * (1 + 2 ** -50));
    }
  });
});

test.each(FLOAT_DTYPES)("scaled and clipped elements of %s arrive at the value", (dtype) => {
  const random = new Random(9);
  const numbers = Array.from({ length: 1_000 }, () => random.normal());
  const gradient = elementsOf(dtype, numbers);
  const zeros = elementsOf(
    dtype,
    numbers.map(() => 0),
  );
  const norm = normOf(gradient);
  const settings = { optimizer: "none", gradientScale: 2, clipNorm: norm, clipValue: 0.5 } as const;
  const { kernels } = pairOf(settings, zeros);
  kernels.push(gradient, { norm });
  // The scaled gradient is twice as long as it may be: it comes through as it was, up to the clip.
  expect(kernels.column(0)).toEqual(gradient.map((g) => Math.min(Math.max(g, -0.5), 0.5)));
});

describe.each(["bfloat16", "float16"] as const)("%s", (encoding) => {
  test("all 65,536 bit patterns are widened to what their fields say", () => {
    const bits = Uint16Array.from({ length: 2 ** 16 }, (_, i) => i);
    const widened = new Float32Array(bits.length);
    decodeElements(encoding, new Uint8Array(bits.buffer), widened);
    const wrong = Array.from(bits).filter(
      (code) => !Object.is(widened[code], referenceDecode(encoding, code)),
    );
    expect(wrong).toEqual([]);
  });

  test("elements are rounded to a neighbour that is not farther than the other", () => {
    const random = new Random(11);
    const elements = Float32Array.from(
      { length: 5_000 },
      () => random.normal() * 2 ** (random.below(12) - 8),
    );
    const bytes = new Uint8Array(2 * elements.length);
    encodeElements(encoding, elements, bytes);
    const bits = new Uint16Array(bytes.buffer);
    for (const [i, element] of elements.entries()) {
      const code = bits[i] as number;
      const apart = Math.abs(referenceDecode(encoding, code) - element);
      for (const neighbour of [code - 1, code + 1]) {
        const other = Math.abs(referenceDecode(encoding, neighbour) - element);
        if (!(apart <= other)) expect({ element, apart, other }).toBeUndefined();
      }
    }
  });
});
