// Proves that long records, whose elements are checked during the checksum's pass, are treated like short
// ones: one NaN or infinity anywhere is found, or stored in its one form where it is allowed.
import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { Folded } from "./folded.ts";

const ELEMENTS = 12_000;
/** Bits of quiet and signalling NaNs of both signs, and of infinities. */
const ODD = {
  float32: [0x7fc00001n, 0xffc00000n, 0x7f800001n, 0xff812345n, 0x7f800000n, 0xff800000n],
  float64: [0x7ff8000000000001n, 0xfff8000000000000n, 0x7ff0000000000001n, 0xfff0000000000000n],
} as const;
const NAN = { float32: 0x7fc00000n, float64: 0x7ff8000000000000n } as const;
const INFINITIES = { float32: 0x7f800000n, float64: 0x7ff0000000000000n } as const;
const SIGNS = { float32: 0x7fffffffn, float64: 0x7fffffffffffffffn } as const;

type Float = "float32" | "float64";

function tensor(dtype: Float): Float32Array<ArrayBuffer> | Float64Array<ArrayBuffer> {
  const at = (_: unknown, i: number): number => (i % 91) / 7 - 6;
  const source = { length: ELEMENTS };
  return dtype === "float32" ? Float32Array.from(source, at) : Float64Array.from(source, at);
}

/** A tensor with one element of these bits. */
function withBits(dtype: Float, at: number, bits: bigint): ReturnType<typeof tensor> {
  const data = tensor(dtype);
  const view = new DataView(data.buffer);
  if (dtype === "float32") view.setUint32(4 * at, Number(bits), true);
  else view.setBigUint64(8 * at, bits, true);
  return data;
}

/** Whether a block's values are those of a tensor, to the bit. */
function holds(folded: Folded, data: ReturnType<typeof tensor>): boolean {
  return Buffer.compare(folded.block().values(), new Uint8Array(data.buffer)) === 0;
}

describe.each(["float32", "float64"] as const)("%s", (dtype) => {
  const place = fc.nat(ELEMENTS - 1);
  const odd = fc.constantFrom(...ODD[dtype]);

  test("an element that is not finite is found in a set, a push and an init", () => {
    fc.assert(
      fc.property(place, odd, (at, bits) => {
        const folded = new Folded();
        const data = withBits(dtype, at, bits);
        folded.journal.init(data);
        folded.journal.init(tensor(dtype));
        folded.journal.set(data);
        folded.journal.push(data, { op: "mix", alpha: 1, beta: 1 }, { norm: null });
        folded.journal.set(tensor(dtype));
        const codes = folded.run().map(({ code }) => code);
        expect(codes).toEqual(["NON_FINITE", undefined, "NON_FINITE", "NON_FINITE", undefined]);
        expect(holds(folded, tensor(dtype))).toBe(true);
      }),
      { numRuns: 20 },
    );
  });

  test("where it is allowed, a NaN is stored in its one form", () => {
    fc.assert(
      fc.property(place, odd, (at, bits) => {
        const folded = new Folded();
        folded.journal.init(tensor(dtype), { config: { allowNonFinite: true } });
        folded.journal.set(withBits(dtype, at, bits));
        folded.apply();
        const isInfinite = (bits & SIGNS[dtype]) === INFINITIES[dtype];
        const wanted = withBits(dtype, at, isInfinite ? bits : NAN[dtype]);
        expect(holds(folded, wanted)).toBe(true);
      }),
      { numRuns: 20 },
    );
  });
});
