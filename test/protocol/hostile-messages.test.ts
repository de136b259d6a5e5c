// Proves that bytes from anybody end in a value or in BAD_MESSAGE, quickly and in little memory. The messages
// here have the right envelope and checksum, because an attacker computes one. Memory is bounded in what a
// reader could be made to allocate: each case would take gigabytes, or minutes, if a declared length were
// believed.
import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { decodeMessage, decodeSealed, sealMessage, unpackValue } from "../../src/protocol/codec.ts";
import { PserverError } from "../../src/protocol/errors.ts";
import { hex, rawMessage } from "./raw-message.ts";
import { codeOf, refusalOf } from "./refusal.ts";

/** Many copies of some bytes. */
function repeat(unit: string, times: number): Uint8Array {
  return hex(unit.repeat(times));
}

function join(...parts: (Uint8Array | string)[]): Uint8Array {
  return Buffer.concat(parts.map((part) => (typeof part === "string" ? hex(part) : part)));
}

describe("refused as BAD_MESSAGE", () => {
  test.each<[string, number, Uint8Array | string]>([
    ["an extension, fixext 1", 1, "a161 d4 01 00"],
    ["a typed array, ext 0x74 of Float32Array", 1, "a464617461 c7 05 74 08 0000c03f"],
    ["a typed array, ext 0x74 of Uint8Array", 1, "a464617461 c7 02 74 01 05"],
    ["a time stamp", 1, "a161 d6 ff 00000001"],
    ["undefined as an extension", 1, "a161 d4 00 00"],
    ["a record definition", 1, "a161 d4 72 40 91 a162 05"],
    ["a regular expression", 1, "a161 c7 04 78 92 a12e a0"],
    ["a set", 1, "a161 c7 02 73 91 01"],
    ["a reference to itself", 1, "a161 d6 69 00000001 91 d6 70 00000001"],
    ["a big integer", 1, "a161 c7 09 42 000000000000000001"],
    ["the type that is never used", 1, "a161 c1"],
    ["text that is not UTF-8", 1, "a161 a2 c328"],
    ["text with half a surrogate pair", 1, "a161 a3 eda080"],
    ["long text that is not UTF-8", 1, join("a161 d9 28", repeat("ff", 40))],
    ["a key that is a number", 1, "01 02"],
    ["a key that is nil", 1, "c0 02"],
    ["a key that is a list", 1, "91a161 02"],
    ["a key that is bytes", 1, "c40161 02"],
    ["the key __proto__", 1, "a9 5f5f70726f746f5f5f 81 a178 01"],
    ["the key __proto__ in a map below", 1, "a161 81 a9 5f5f70726f746f5f5f 81 a178 01"],
    ["a key twice", 2, "a161 01 a161 02"],
    ["a key twice in a map below", 1, "a161 82 a162 01 a162 01"],
    ["a second checksum", 1, "a3637263 ce00000000"],
    ["a second version", 1, "a176 01"],
    ["tensor bytes twice", 2, "a464617461 c40101 a464617461 c40102"],
    ["nil and then tensor bytes", 2, "a464617461 c0 a464617461 c40102"],
    ["a missing value", 1, "a161"],
    ["a missing entry", 2, "a161 01"],
    ["an entry too many", 1, "a161 01 a162 02"],
    ["a byte after the end", 1, "a161 01 c0"],
    ["tensor bytes that are a list", 1, "a464617461 93010203"],
    ["tensor bytes that are nil", 1, "a464617461 c0"],
    ["tensor bytes that are text", 1, "a464617461 a3616263"],
    ["tensor bytes before another entry", 2, "a464617461 c40101 a161 01"],
    ["fewer tensor bytes than are announced", 1, "a464617461 c600000005 01020304"],
    ["4 GiB of tensor bytes announced", 1, "a464617461 c6ffffffff 01"],
    ["4 GiB of text announced", 1, "a161 dbffffffff 61"],
    ["4 billion list entries announced", 1, "a161 ddffffffff 01"],
    ["4 billion map entries announced", 1, "a161 dfffffffff a16201"],
    ["30 million entries announced in lists of lists", 1, join("a161", repeat("dd01c9c380", 30))],
    ["as many entries as bytes, announced over and over", 1, nestedClaims()],
    ["lists 17 deep, the message being the first", 1, join("a161", repeat("91", 15), "90")],
    ["maps 17 deep, the message being the first", 1, join("a161", repeat("81a161", 15), "80")],
    ["lists a million deep", 1, join("a161", repeat("91", 1_000_000), "01")],
    ["maps a million deep", 1, join("a161", repeat("81a161", 1_000_000), "01")],
    ["one byte after 8 MB of tensor bytes", 1, trailing()],
  ])("%s", (_what, count, rest) => {
    expect(codeOf(() => decodeMessage(rawMessage(count, rest)))).toBe("BAD_MESSAGE");
  });

  test.each([
    "",
    "80",
    "81a3637263ce00000000",
    "81a3637263ce00000000c0",
    "82a3637263ce00000000",
    "82a3637263cf0000000000000000a17601",
    "82a176 01 a3637263 ce00000000",
    "de0002 a3637263 ce00000000 a17601",
    "92a3637263ce00000000a17601",
    "c0",
  ])("what has no envelope: %s", (bytes) => {
    expect(codeOf(() => decodeMessage(hex(bytes)))).toBe("BAD_MESSAGE");
  });
});

test("a version that is missing or no number is BAD_VERSION", () => {
  const draft = rawMessage(0, "");
  expect(decodeMessage(draft).fields).toEqual({});
  for (const key of ["w", "V"]) {
    const bytes = Uint8Array.from(draft);
    bytes[11] = key.charCodeAt(0);
    const resealed = sealMessage({ bytes, data: bytes });
    expect(codeOf(() => decodeMessage(resealed))).toBe("BAD_VERSION");
  }
});

describe("read although no encoder of ours writes it", () => {
  test.each<[string, string, unknown]>([
    ["a small integer in eight bytes", "cf0000000000000005", 5],
    ["2^53 − 1 as an integer", "cf001fffffffffffff", 2 ** 53 - 1],
    ["a negative integer in eight bytes", "d3ffffffffffffffff", -1],
    ["a positive integer in a signed type", "d10005", 5],
    ["float32", "ca3fc00000", 1.5],
    ["short text with a long length", "db00000001 61", "a"],
    ["keys with long lengths", "83 d90162 07 da000163 08 db0000000164 09", { b: 7, c: 8, d: 9 }],
    ["bytes with any length", "c50001 07", Uint8Array.of(7)],
    ["a short list with a long length", "dd00000001 07", [7]],
    ["a short map with a long length", "df00000001 a162 07", { b: 7 }],
    ["lists 16 deep, the message being the first", `${"91".repeat(14)}90`, nested(15)],
    ["a key that objects have", "81 ab636f6e7374727563746f72 01", { constructor: 1 }],
    ["the envelope's keys", "83 a3637263 01 a176 02 a464617461 03", { crc: 1, v: 2, data: 3 }],
    ["text that begins with U+FEFF", "a4efbbbf61", "\ufeffa"],
  ])("%s", (_what, bytes, expected) => {
    expect(decodeMessage(rawMessage(1, `a161 ${bytes}`)).fields["a"]).toEqual(expected);
  });
});

describe("a refusal says where, and what is there", () => {
  test.each<[string, number, string]>([
    ['byte 17: received the key "crc" again', 1, "a3637263 ce00000000"],
    ['byte 15: received the key "v" again', 1, "a176 01"],
    ['byte 26: received the key "data" again', 2, "a464617461 c40101 a464617461 c40102"],
    ['byte 18: received the key "a" again', 2, "a161 01 a161 c1"],
    ["byte 23: received the key __proto__", 1, "a9 5f5f70726f746f5f5f 01"],
    ["byte 13: received a key that is no text", 1, "01 02"],
    ["byte 14: received 1 bytes where 2 are announced", 1, "a261"],
    ["byte 16: received 3 bytes where 4 are announced", 1, "a161 ca 000000"],
    ["byte 16: received 7 bytes where 8 are announced", 1, "a161 cb 00000000000000"],
    ["byte 16: received text that is not UTF-8", 1, "a161 a1 ff"],
    ["byte 15: received the type 0xc1, which the protocol does not use", 1, "a161 c1"],
    ["byte 1: received 30 values announced in 12 bytes", 13, ""],
    ["byte 16: received 30 values announced in 0 bytes", 1, "a161 8f"],
    ["byte 16: received 2 bytes after the end of the value", 1, "a161 01 c0c0"],
  ])("%s", (message, count, rest) => {
    const refusal = refusalOf(() => decodeMessage(rawMessage(count, rest)));
    expect(refusal.message).toBe(`msgpack, ${message}`);
    expect(message).toContain(`byte ${refusal.details["position"]}:`);
  });
});

test("the version nil counts as one: another after it is refused", () => {
  const bytes = hex("83a3637263ce00000000 a176c0 a17601");
  expect(codeOf(() => decodeMessage(sealMessage({ bytes, data: bytes })))).toBe("BAD_MESSAGE");
});

test("a value may begin at the bound of the header and not after it", () => {
  const bytes = rawMessage(3, "a161 01 a162 02 a164 00");
  // The last value is the last byte.
  const last = bytes.length - 1;
  for (const decode of [decodeMessage, decodeSealed]) {
    expect(decode(bytes, last).fields).toEqual({ a: 1, b: 2, d: 0 });
    const refusal = refusalOf(() => decode(bytes, last - 1));
    expect(refusal.message).toBe(`msgpack, byte ${last}: received a value after ${last - 1}`);
  }
});

test("an entry may have any name that objects know, and come before the version", () => {
  const bytes = hex(
    "84a3637263ce00000000 ab636f6e7374727563746f72 01 a8746f537472696e67 02 a17601",
  );
  const { fields } = decodeMessage(sealMessage({ bytes, data: bytes }));
  expect(Object.entries(fields)).toEqual([
    ["constructor", 1],
    ["toString", 2],
  ]);
});

test("nothing that was read reaches another message", () => {
  // A reader with record definitions would take the 0x40 of the second message for a record.
  codeOf(() => decodeMessage(rawMessage(1, "a161 d4 72 40 91 a162 05")));
  expect(decodeMessage(rawMessage(1, "a161 40")).fields).toEqual({ a: 0x40 });
  codeOf(() => decodeMessage(rawMessage(1, "a9 5f5f70726f746f5f5f 81 a178 01")));
  expect(({} as Record<string, unknown>)["x"]).toBeUndefined();
});

test("garbage behind a right checksum never ends in anything but a value or BAD_MESSAGE", () => {
  const token = fc.oneof(
    fc.integer({ min: 0, max: 255 }),
    fc.constantFrom(0x81, 0x91, 0xa1, 0x61, 0xc4, 0xc6, 0xd9, 0xdc, 0xdd, 0xde, 0xdf, 0xd4, 0xc7),
  );
  fc.assert(
    fc.property(fc.array(token, { maxLength: 60 }), fc.nat(13), (bytes, count) => {
      const message = rawMessage(count, Uint8Array.from(bytes));
      expect(["", "BAD_MESSAGE", "BAD_VERSION"]).toContain(codeOf(() => decodeMessage(message)));
    }),
    { numRuns: 3000 },
  );
});

test("garbage without a checksum ends the same way", () => {
  fc.assert(
    fc.property(fc.uint8Array({ maxLength: 64 }), (bytes) => {
      expect(() => decodeMessage(bytes)).toThrow(PserverError);
      expect(["", "BAD_MESSAGE"]).toContain(codeOf(() => unpackValue(bytes)));
    }),
    { numRuns: 1000 },
  );
});

/** Lists each of which announces all bytes that are left: 2^16 entries, thousands of times. */
function nestedClaims(): Uint8Array {
  return join("a161", repeat("dc7fff", 20_000));
}

function trailing(): Uint8Array {
  const bytes = 8_000_000;
  return join(`a464617461c6${bytes.toString(16).padStart(8, "0")}`, new Uint8Array(bytes + 1));
}

function nested(depth: number): unknown[] {
  return depth === 1 ? [] : [nested(depth - 1)];
}
