// Proves that checksums of two strings can be joined without the strings, and that a message sealed
// so is the message sealed from its bytes.
import fc from "fast-check";
import { expect, test } from "vitest";
import { draftMessage, encodeMessage, sealMessage } from "../../src/protocol/codec.ts";
import { checksum, joinChecksums } from "../../src/protocol/crc.ts";

test("the checksum is that of CRC-32/ISO-HDLC", () => {
  expect(checksum(new TextEncoder().encode("123456789"))).toBe(0xcbf43926);
});

test("checksums are joined", () => {
  fc.assert(
    fc.property(fc.uint8Array(), fc.uint8Array({ maxLength: 300 }), (first, second) => {
      const joined = joinChecksums(checksum(first), checksum(second), second.length);
      expect(joined).toBe(checksum(second, checksum(first)));
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
