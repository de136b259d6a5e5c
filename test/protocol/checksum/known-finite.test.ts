// Proves that the pass of a checksum never takes elements for finite that are not, wherever they lie, and
// that it knows finite ones of ordinary messages. The reference looks at every element.
import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { checksum, isKnownFinite } from "../../../src/protocol/checksum/checksum.ts";

import { encodeMessage } from "../../../src/protocol/codec.ts";

const FORMS = {
  float32: { bytes: 4, odd: [0x7f800000, 0xff800000, 0x7fc00000, 0xffffffff, 0x7f800001] },
  float64: { bytes: 8, odd: [0x7ff00000, 0xfff00000, 0x7ff80000, 0xffffffff] },
  bfloat16: { bytes: 2, odd: [0x7f80, 0xff80, 0x7fc0, 0xffff, 0x7f81] },
  float16: { bytes: 2, odd: [0x7c00, 0xfc00, 0x7e00, 0xffff, 0x7c01] },
} as const;

/** The largest finite magnitudes, and zeros. */
const LARGEST = { float32: 0x7f7fffff, float64: 0x7fefffff, bfloat16: 0x7f7f, float16: 0x7bff };

type Form = keyof typeof FORMS;

/** Writes the upper bits of an element, whose lower ones are as they are. */
function put(view: DataView, form: Form, at: number, bits: number): void {
  if (form === "float32") view.setUint32(at, bits, true);
  else if (form === "float64") view.setUint32(at + 4, bits, true);
  else view.setUint16(at, bits, true);
}

describe.each(Object.keys(FORMS) as Form[])("%s", (form) => {
  const { bytes, odd } = FORMS[form];

  test("one element that is not finite is seen wherever it is, after a header of any length", () => {
    const buffer = new ArrayBuffer(120_000);
    const view = new DataView(buffer);
    for (let at = 0; at + bytes <= 120_000; at += 2) view.setUint16(at, 0x3c00, true);
    fc.assert(
      fc.property(
        fc.integer({ min: 0, max: 100 }),
        fc.integer({ min: 17_000 / bytes, max: 110_000 / bytes }),
        fc.nat(3),
        fc.constantFrom(...odd),
        fc.double({ min: 0, max: 1, maxExcluded: true, noNaN: true }),
        (header, count, padding, bits, where) => {
          const elements = new Uint8Array(buffer, header, count * bytes);
          const message = new Uint8Array(buffer, 0, header + count * bytes + padding * bytes);
          checksum(message);
          const at = header + Math.floor(where * count) * bytes;
          const before = new Uint8Array(buffer, at, bytes).slice();
          put(view, form, at, bits);
          checksum(message);
          expect(isKnownFinite(elements, form)).toBe(false);
          new Uint8Array(buffer).set(before, at);
        },
      ),
    );
  });

  test("the largest finite elements of a message are known", () => {
    const data = new Uint8Array(40_000);
    const view = new DataView(data.buffer);
    for (let at = 0; at < data.length; at += 3 * bytes) {
      if (at + bytes <= data.length) put(view, form, at, LARGEST[form]);
    }
    const message = encodeMessage({ session: 1, n: 2, reply: "_INBOX.t1.applied" }, data);
    checksum(message.subarray(10));
    expect(isKnownFinite(message.subarray(message.length - data.length), form)).toBe(true);
  });
});

test("nothing is known of other bytes than those of the last checksum", () => {
  const [first, second] = [new Uint8Array(40_000), new Uint8Array(40_000)];
  checksum(first);
  expect(isKnownFinite(first.subarray(16), "float32")).toBe(true);
  expect(isKnownFinite(second.subarray(16), "float32")).toBe(false);
  checksum(second.subarray(0, 30_000));
  expect(isKnownFinite(first.subarray(16), "float32")).toBe(false);
  expect(isKnownFinite(second.subarray(16), "float32")).toBe(false);
  expect(isKnownFinite(second.subarray(16, 30_000), "float32")).toBe(true);
  checksum(second.subarray(0, 100));
  expect(isKnownFinite(second.subarray(16, 30_000), "float32")).toBe(false);
});

test("elements that are not whole ones before the end are not known", () => {
  const bytes = new Uint8Array(40_000);
  checksum(bytes);
  expect(isKnownFinite(bytes.subarray(16, 39_999), "bfloat16")).toBe(false);
  expect(isKnownFinite(bytes.subarray(16, 39_998), "float32")).toBe(false);
  expect(isKnownFinite(bytes.subarray(16, 39_996), "float64")).toBe(false);
});
