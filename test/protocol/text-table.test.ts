// Proves that a table of texts gives what the bytes hold and nothing else, whatever it has kept: with two
// slots nearly all texts share one, so each case below also meets another text in its place. The decoder's
// calls show which texts are kept and which are decoded anew.
import fc from "fast-check";
import { afterEach, describe, expect, test, vi } from "vitest";
import { KEPT_TEXT_BYTES_MAX, TextTable } from "../../src/protocol/msgpack.ts";

const encoder = new TextEncoder();
const decoder = new TextDecoder("utf-8", { fatal: true, ignoreBOM: true });
/** What a text of that many bytes is decoded with; shorter ones may be read otherwise. */
const DECODED_BYTES = 40;

afterEach(() => {
  vi.restoreAllMocks();
});

/** What the bytes hold, undefined if they are not UTF-8. */
function decoded(bytes: Uint8Array): string | undefined {
  try {
    return decoder.decode(bytes);
  } catch {
    return undefined;
  }
}

function read(table: TextTable, bytes: Uint8Array): string | undefined {
  return table.read(bytes, 0, bytes.length);
}

/** Text of ASCII, of which each length makes another. */
function ascii(bytes: number): Uint8Array {
  return Uint8Array.from({ length: bytes }, (_, i) => 97 + ((i + bytes) % 26));
}

/** The bytes with one of them changed. */
function changed(bytes: Uint8Array, at: number, by: number): Uint8Array {
  return bytes.map((byte, i) => (i === at ? byte ^ by : byte));
}

const lengthMax = KEPT_TEXT_BYTES_MAX + 8;
/** Texts, bytes that are none, and nearly the same again: a zero more, or one byte changed. */
const bytes: fc.Arbitrary<Uint8Array> = fc
  .oneof(
    fc.string({ unit: "binary", maxLength: lengthMax }).map((text) => encoder.encode(text)),
    fc.string({ unit: "binary-ascii", maxLength: lengthMax }).map((text) => encoder.encode(text)),
    fc.uint8Array({ maxLength: lengthMax }),
    fc.integer({ min: 0, max: lengthMax }).map(ascii),
  )
  .chain((given) =>
    fc.oneof(
      fc.constant(given),
      fc.constant(Uint8Array.of(...given, 0)),
      fc.constant(Uint8Array.of(0, ...given)),
      fc.tuple(fc.nat(lengthMax), fc.integer({ min: 1, max: 255 })).map(([at, by]) => {
        return changed(given, at, by);
      }),
    ),
  );

test.each([1, 4, 11])("reads right whatever was read before, with 2^%i slots", (slotBits) => {
  const table = new TextTable(slotBits);
  fc.assert(
    fc.property(fc.array(bytes, { maxLength: 6 }), fc.nat(9), (given, offset) => {
      for (const each of [...given, ...given.toReversed()]) {
        const room = new Uint8Array(offset + each.length + 5).fill(0x61);
        room.set(each, offset);
        expect(table.read(room, offset, each.length)).toBe(decoded(each));
      }
    }),
    { numRuns: 1000 },
  );
});

describe("in two slots", () => {
  test("texts that differ in one bit of any byte stay apart", () => {
    const table = new TextTable(1);
    const mixed: string[] = [];
    for (let length = 1; length <= lengthMax; length++) {
      const text = ascii(length);
      for (let at = 0; at < length; at++) {
        // Bits that leave a letter ASCII, so that it is a text, and is kept.
        for (const bit of [1, 2, 4, 8, 16, 32]) {
          const other = changed(text, at, bit);
          const isRight = [text, other].every((each) => read(table, each) === decoded(each));
          if (!isRight) mixed.push(`${length} bytes, byte ${at} changed by ${bit}`);
        }
      }
    }
    expect(mixed).toEqual([]);
  });

  test("a text and its beginnings stay apart, zeros at either end too", () => {
    const table = new TextTable(1);
    const whole = Uint8Array.of(0, 0, ...ascii(9), 0, 0, 0, 0);
    for (let round = 0; round < 2; round++) {
      for (let start = 0; start < whole.length; start++) {
        for (let end = start; end <= whole.length; end++) {
          const part = whole.subarray(start, end);
          expect(table.read(whole, start, end - start)).toBe(decoded(part));
        }
      }
    }
  });

  test("bytes that are not UTF-8 are no text before, between and after texts", () => {
    const table = new TextTable(1);
    for (let length = 1; length <= lengthMax; length++) {
      const text = ascii(length);
      // A byte that continues a character, where none has begun.
      const none = [0, length >> 1, length - 1].map((at) => changed(text, at, 0xe0));
      for (const each of [...none, text, ...none, text, ...none, ...none]) {
        expect(read(table, each)).toBe(each === text ? decoded(text) : undefined);
      }
    }
  });
});

describe("what is kept", () => {
  test.each([DECODED_BYTES, KEPT_TEXT_BYTES_MAX])("a text of %i bytes is", (length) => {
    const table = new TextTable(11);
    const decode = vi.spyOn(TextDecoder.prototype, "decode");
    for (let i = 0; i < 5; i++) expect(read(table, ascii(length))).toHaveLength(length);
    expect(decode).toHaveBeenCalledTimes(1);
  });

  test("a text one byte longer is not", () => {
    const table = new TextTable(11);
    const text = ascii(KEPT_TEXT_BYTES_MAX + 1);
    const decode = vi.spyOn(TextDecoder.prototype, "decode");
    for (let i = 0; i < 5; i++) expect(read(table, text)).toHaveLength(text.length);
    expect(decode).toHaveBeenCalledTimes(5);
  });

  test("is the bytes, not their place: overwriting them changes neither text", () => {
    const table = new TextTable(1);
    fc.assert(
      fc.property(fc.array(bytes, { minLength: 1, maxLength: 8 }), (given) => {
        const room = new Uint8Array(lengthMax + 16);
        const texts = given.map((each) => {
          room.set(each, 3);
          return table.read(room, 3, each.length);
        });
        room.fill(0x7a);
        expect(texts).toEqual(given.map(decoded));
        for (const { length } of given)
          expect(table.read(room, 3, length)).toBe("z".repeat(length));
        expect(given.map((each) => read(table, each))).toEqual(texts);
      }),
      { numRuns: 500 },
    );
  });

  test("texts that are much alike seldom meet in a slot", () => {
    const texts = Array.from({ length: 100 }, (_, i) =>
      encoder.encode(`_INBOX_digits.trainer-${i}.4f9a0c${i}.applied`),
    );
    const table = new TextTable(11);
    for (const text of texts) read(table, text);
    const decode = vi.spyOn(TextDecoder.prototype, "decode");
    for (const text of texts) read(table, text);
    // Of 100 in 2048 slots, five meet another by chance.
    expect(decode.mock.calls.length).toBeLessThan(20);
  });
});
