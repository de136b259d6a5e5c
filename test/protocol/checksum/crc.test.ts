// Proves that long byte strings have the checksum that zlib gives, that checksums of two strings can be
// joined without the strings, and that a message sealed so is the message sealed from its bytes.
import { crc32 } from "node:zlib";
import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { checksum, joinChecksums, LONG_BYTES } from "../../../src/protocol/checksum/checksum.ts";

import { draftMessage, encodeMessage, sealMessage } from "../../../src/protocol/codec.ts";

test("the checksum is that of CRC-32/ISO-HDLC", () => {
  expect(checksum(new TextEncoder().encode("123456789"))).toBe(0xcbf43926);
});

describe("a long byte string has zlib's checksum", () => {
  const bytes = new Uint8Array(400_000);
  let state = 1;
  for (let i = 0; i < bytes.length; i++) {
    state = (Math.imul(state, 1_103_515_245) + 12_345) >>> 0;
    bytes[i] = state >>> 24;
  }
  const chunk = 32 * 1024;
  const reach = 4_800;

  test.each([
    LONG_BYTES - 1,
    LONG_BYTES,
    LONG_BYTES + 15,
    chunk - 16,
    chunk,
    chunk + 1,
    chunk + 16,
    chunk + reach - 16,
    chunk + reach,
    chunk + reach + 17,
    2 * chunk,
    3 * chunk + reach + 5,
    bytes.length,
  ])("of %i bytes", (length) => {
    const part = bytes.subarray(0, length);
    expect(checksum(part)).toBe(crc32(part));
  });

  test("wherever it begins and ends, after whatever came before", () => {
    const place = fc.integer({ min: 0, max: bytes.length });
    const previous = fc.integer({ min: 0, max: 0xffffffff });
    fc.assert(
      fc.property(place, place, previous, (start, end, before) => {
        const part = bytes.subarray(Math.min(start, end), Math.max(start, end));
        expect(checksum(part, before)).toBe(crc32(part, before));
      }),
    );
  });

  test("of zeros and of ones", () => {
    for (const fill of [0, 0xff]) {
      const same = new Uint8Array(100_003).fill(fill);
      expect(checksum(same)).toBe(crc32(same));
    }
  });
});

test("checksums are joined", () => {
  fc.assert(
    fc.property(fc.uint8Array(), fc.uint8Array({ maxLength: 300 }), (first, second) => {
      const joined = joinChecksums(checksum(first), checksum(second), second.length);
      expect(joined).toBe(checksum(second, checksum(first)));
    }),
  );
});

test("those of three strings are joined in either order, however long the strings are", () => {
  const crc = fc.integer({ min: 0, max: 0xffffffff });
  const length = fc.integer({ min: 0, max: 2 ** 40 });
  const lengths = fc.oneof(fc.constantFrom(2 ** 27, 2 ** 28), length);
  fc.assert(
    fc.property(crc, crc, crc, lengths, lengths, (a, b, c, bBytes, cBytes) => {
      const fromTheLeft = joinChecksums(joinChecksums(a, b, bBytes), c, cBytes);
      const fromTheRight = joinChecksums(a, joinChecksums(b, c, cBytes), bBytes + cBytes);
      expect(fromTheLeft).toBe(fromTheRight);
    }),
  );
});

test("also of long strings", () => {
  const first = Uint8Array.of(1, 2, 3);
  const second = new Uint8Array(4 * 1024 ** 2 + 5).fill(0xa7);
  const joined = joinChecksums(checksum(first), checksum(second), second.length);
  expect(joined).toBe(checksum(second, checksum(first)));
});

test("a message can be sealed with the checksum of its data", () => {
  fc.assert(
    fc.property(fc.string(), fc.uint8Array({ maxLength: 300 }), (name, data) => {
      const fields = { name: name.toWellFormed() };
      const draft = draftMessage(fields, data.length);
      draft.data.set(data);
      expect(sealMessage(draft, checksum(data))).toEqual(encodeMessage(fields, data));
    }),
  );
});
