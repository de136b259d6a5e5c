// Proves that numbers are read and written as a DataView does, for any bytes at any place.
import fc from "fast-check";
import { expect, test } from "vitest";
import {
  readFloat32,
  readFloat64,
  readInt64,
  readUint32,
  readUint64,
  writeUint32,
} from "../../src/protocol/msgpack.ts";

const BYTES = 8;
/** Bytes at the ends of their range more often than others: signs, infinities, zeros. */
const byte = fc.oneof(fc.integer({ min: 0, max: 255 }), fc.constantFrom(0, 0x7f, 0x80, 0xff));
const place = fc.tuple(fc.array(byte, { minLength: BYTES, maxLength: BYTES }), fc.nat(9));

test("numbers are those that a DataView reads", () => {
  fc.assert(
    fc.property(place, ([given, at]) => {
      const bytes = new Uint8Array(at + BYTES + 1);
      bytes.set(given, at);
      const view = new DataView(bytes.buffer, at);
      expect(readUint32(bytes, at)).toBe(view.getUint32(0));
      expect(readUint64(bytes, at)).toBe(Number(view.getBigUint64(0)));
      expect(readInt64(bytes, at)).toBe(Number(view.getBigInt64(0)));
      expect(readFloat32(bytes, at)).toBe(view.getFloat32(0));
      expect(readFloat64(bytes, at)).toBe(view.getFloat64(0));
    }),
    { numRuns: 2000 },
  );
});

test("a number is written where it is read", () => {
  fc.assert(
    fc.property(fc.nat(0xffffffff), fc.nat(9), (number, at) => {
      const bytes = new Uint8Array(at + 5).fill(0xa5);
      writeUint32(bytes, at, number);
      expect(new DataView(bytes.buffer).getUint32(at)).toBe(number);
      expect(bytes[at + 4]).toBe(0xa5);
      expect(bytes[at - 1] ?? 0xa5).toBe(0xa5);
    }),
  );
});
