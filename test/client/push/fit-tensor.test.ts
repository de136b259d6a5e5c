// Proves which tensors fit a parameter; that a gradient is checked for finite elements alike whether its norm
// is needed or not, as it is and as it is encoded; and that the norm is that of what is sent.
import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { checkedNorm, fitData, fitTensor } from "../../../src/client/push/block-updates.ts";
import { toConfig } from "../../../src/protocol/config/index.ts";
import { type Encoding, encodedBytes } from "../../../src/protocol/dtypes.ts";
import { decodeElements, encodeElements } from "../../../src/protocol/encoding/encoding.ts";
import { PserverError } from "../../../src/protocol/errors.ts";
import { l2Norm } from "../../../src/protocol/tensor.ts";
import { parameter } from "../joined-client.ts";

const DTYPES = { float32: Float32Array, float64: Float64Array } as const;

/** The elements as the host gets them. */
function asSent(data: Float32Array, encoding: Encoding): Float32Array {
  const encoded = new Uint8Array(encodedBytes("float32", encoding, data.length));
  encodeElements(encoding, data, encoded);
  const sent = new Float32Array(data.length);
  decodeElements(encoding, encoded, sent);
  return sent;
}

/** The norm, or the code of the error. */
function attempt(
  settings: { clipNorm?: number; allowNonFinite?: boolean },
  data: Float32Array | Float64Array,
  encoding: Encoding | undefined,
): number | string | undefined {
  const dtype = data instanceof Float32Array ? "float32" : "float64";
  const config = toConfig({ learningRate: 1, ...settings });
  try {
    const { length } = data;
    const info = { ...parameter("w", {}, { shape: [length] }), dtype, config } as const;
    const place = { info, start: 0, count: length, rows: undefined, elements: length };
    return checkedNorm(info, data, () => [place], { encoding });
  } catch (error) {
    if (!(error instanceof PserverError)) throw error;
    return error.code;
  }
}

const element = fc.oneof(
  { weight: 20, arbitrary: fc.double({ min: -100, max: 100, noNaN: true }) },
  fc.constantFrom(Number.NaN, Number.POSITIVE_INFINITY, 1e300, 65_519, 65_520, -3.4e38, 3.395e38),
);

test("an element that is not finite is found with a norm and without", () => {
  fc.assert(
    fc.property(
      fc.array(element, { minLength: 1, maxLength: 30 }),
      fc.constantFrom("float32", "float64"),
      fc.constantFrom(undefined, "bfloat16", "float16", "int8", "e3m0"),
      (list, dtype, given) => {
        const encoding = dtype === "float64" ? undefined : given;
        const data = DTYPES[dtype].from(list);
        const sent = encoding === undefined ? data : asSent(data as Float32Array, encoding);
        const allFinite = sent.every((value) => Number.isFinite(value));
        expect(attempt({}, data, encoding)).toBe(allFinite ? undefined : "NON_FINITE");
        const found = attempt({ clipNorm: 1 }, data, encoding);
        const any = attempt({ clipNorm: 1, allowNonFinite: true }, data, encoding);
        if (!allFinite) {
          expect(found).toBe("NON_FINITE");
          expect(Number.isFinite(any)).toBe(false);
          return;
        }
        expect(any).toBe(found);
        expect(Math.abs((found as number) - l2Norm(sent))).toBeLessThanOrEqual(1e-9 * l2Norm(sent));
      },
    ),
  );
});

test("an encoding that the type does not have is refused before anything else", () => {
  const data = Float64Array.of(Number.NaN);
  for (const settings of [{}, { clipNorm: 1 }]) {
    expect(attempt(settings, data, "float16")).toBe("UNSUPPORTED");
  }
});

describe("of a parameter of shape [2, 2]", () => {
  const info = parameter("w", {}, { shape: [2, 2] });

  test("a bare array of as many elements takes the shape, and is not copied", () => {
    const data = new Float32Array(4);
    const tensor = fitTensor(info, data);
    expect(tensor).toEqual({ dtype: "float32", shape: [2, 2], data });
    expect(tensor.data).toBe(data);
  });

  test.each([1, 3, 5, 8])(
    "a bare array of %i elements is refused, and its length told",
    (count) => {
      expect(() => fitTensor(info, new Float32Array(count))).toThrow(
        expect.objectContaining({
          code: "BAD_SHAPE",
          message: `"w": expected shape [2,2]; received ${count} elements`,
        }),
      );
    },
  );

  test.each([[[4]], [[4, 1]], [[1, 2, 2]], [[2, 3]]])(
    "a tensor of shape [%s] is refused",
    (shape) => {
      const data = new Float32Array(shape.reduce((product, size) => product * size, 1));
      expect(() => fitTensor(info, { dtype: "float32", shape, data })).toThrow(
        expect.objectContaining({ code: "BAD_SHAPE" }),
      );
    },
  );

  test("an array of another type is refused, whatever its length", () => {
    expect(() => fitTensor(info, new Float64Array(4))).toThrow(
      expect.objectContaining({ code: "BAD_DTYPE" }),
    );
  });
});

test("where no elements are expected, an array without any fits, and one with some does not", () => {
  const info = parameter("w");
  expect(fitData(info, new Float32Array(0), [0, 4], 0)).toHaveLength(0);
  expect(() => fitData(info, new Float32Array(1), [0, 4], 0)).toThrow(
    expect.objectContaining({ code: "BAD_SHAPE" }),
  );
});
