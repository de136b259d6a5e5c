// Proves batched reads: they come back as they were encoded, whatever the address of the message; columns that lie are
// refused with the entry at fault; and a change of any byte is refused, or gives a request that can be read.
import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { encodeMessage, type Fields, sealMessage } from "../../src/protocol/codec.ts";
import { PserverError } from "../../src/protocol/errors.ts";
import { BATCH_ENTRIES_MAX } from "../../src/protocol/limits.ts";
import {
  type BatchReadHeader,
  decodeBatchRead,
  encodeBatchRead,
  type WantedEntries,
} from "../../src/protocol/messages/batch-reads.ts";
import { counter, positive } from "./arbitraries.ts";
import { refusalOf } from "./refusal.ts";

const HEAD: BatchReadHeader = { generation: 1, seq: 0, waitMs: 0 };

const header: fc.Arbitrary<BatchReadHeader> = fc.record(
  {
    generation: positive,
    seq: counter,
    waitMs: fc.nat(10_000),
    step: counter,
    encoding: fc.constantFrom("bfloat16" as const, "float16" as const),
  },
  { requiredKeys: ["generation", "seq", "waitMs"] },
);

const uint32 = fc.integer({ min: 0, max: 2 ** 32 - 1 });

/** Lists of numbers, as the columns of parts have them: how long each is, and all of them. */
function lists(entries: number): fc.Arbitrary<{ lengths: Uint32Array; all: Uint32Array }> {
  const length = { minLength: entries, maxLength: entries };
  return fc.array(fc.array(uint32, { maxLength: 5 }), length).map((each) => ({
    lengths: Uint32Array.from(each, (list) => list.length),
    all: Uint32Array.from(each.flat()),
  }));
}

const wanted: fc.Arbitrary<WantedEntries> = fc.integer({ min: 1, max: 12 }).chain((entries) => {
  const length = { minLength: entries, maxLength: entries };
  return fc
    .tuple(
      fc.array(uint32, length),
      fc.option(fc.tuple(lists(entries), fc.option(lists(entries), { nil: undefined })), {
        nil: undefined,
      }),
      fc.option(fc.array(counter, length), { nil: undefined }),
    )
    .map(([numbers, parts, have]): WantedEntries => {
      const [rows, inner] = parts ?? [];
      const hasLists = rows !== undefined && rows.all.length > 0;
      const hasInner = inner !== undefined && inner.all.length > 0;
      return {
        numbers: Uint32Array.from(numbers),
        parts: hasLists
          ? {
              ...{ rows: rows.lengths, rowList: rows.all },
              inner: hasInner ? inner.lengths : undefined,
              innerList: hasInner ? inner.all : undefined,
            }
          : undefined,
        have: have && Float64Array.from(have),
      };
    });
});

/** A message in a Buffer at an address that is no multiple of anything. */
function moved(bytes: Uint8Array, offset: number): Uint8Array {
  return Buffer.concat([new Uint8Array(offset), bytes]).subarray(offset);
}

test("a batched read comes back, at any address", () => {
  fc.assert(
    fc.property(header, wanted, fc.nat(7), fc.nat(11), (given, entries, offset, from) => {
      const first = from % entries.numbers.length;
      const bytes = encodeBatchRead({ ...given, from: first }, entries);
      const { numbers, parts, have, ...rest } = decodeBatchRead(moved(bytes, offset));
      expect(rest).toEqual({ ...given, from: first });
      expect({ numbers, parts, have }).toEqual(entries);
    }),
  );
});

test("whatever is changed in its bytes, it is refused, or can be read", () => {
  const changes = fc.array(fc.tuple(fc.nat(), fc.nat(255)), { minLength: 1, maxLength: 3 });
  fc.assert(
    fc.property(wanted, changes, (entries, changed) => {
      const bytes = encodeBatchRead(HEAD, entries);
      for (const [at, value] of changed) bytes[10 + (at % (bytes.length - 10))] = value;
      try {
        const read = decodeBatchRead(sealMessage({ bytes, data: bytes }));
        const { numbers, parts } = read;
        expect(numbers.length).toBeGreaterThan(0);
        if (parts === undefined) return;
        expect(parts.rows.reduce((sum, rows) => sum + rows, 0)).toBe(parts.rowList.length);
      } catch (error) {
        expect(error).toBeInstanceOf(PserverError);
      }
    }),
    { numRuns: 500 },
  );
});

describe("a batched read is refused", () => {
  const two = new Uint8Array(Uint32Array.of(1, 2).buffer);
  const with32 = (...values: number[]): Uint8Array =>
    new Uint8Array([...two, ...new Uint8Array(Uint32Array.from(values).buffer)]);

  test.each<[string, Fields, Uint8Array, string, RegExp]>([
    ["without entries", { entries: 0 }, new Uint8Array(0), "EMPTY", /at least one/],
    ["with too many", { entries: 4_097 }, two, "TOO_LARGE", new RegExp(`${BATCH_ENTRIES_MAX}`)],
    ["from behind its end", { entries: 2, from: 2 }, two, "BAD_MESSAGE", /from/],
    ["with fewer bytes", { entries: 3 }, two, "BAD_LENGTH", /expected 16 bytes/],
    ["with more bytes", { entries: 2 }, with32(0, 0), "BAD_LENGTH", /expected 8 bytes/],
    [
      "with more rows than its lists have",
      { entries: 2, part: [1] },
      with32(1, 1, 7, 0),
      "BAD_LENGTH",
      /^entry 1: rows: expected 0 to 0; received 1/,
    ],
    [
      "with fewer rows than its lists have",
      { entries: 2, part: [2] },
      with32(1, 0, 7, 8),
      "BAD_LENGTH",
      /rows: expected 2 in all; received 1/,
    ],
    [
      "with bytes that are not zero behind a column",
      { entries: 2, part: [1] },
      with32(1, 0, 7, 1),
      "BAD_MESSAGE",
      /zeros/,
    ],
    [
      "with a version that is none",
      { entries: 2, have: true },
      new Uint8Array([...two, ...new Uint8Array(Float64Array.of(1, -0.5).buffer)]),
      "BAD_VALUE",
      /^entry 1: have: /,
    ],
  ])("%s", (_what, fields, data, code, text) => {
    const error = refusalOf(() => decodeBatchRead(encodeMessage({ ...HEAD, ...fields }, data)));
    expect(error.code).toBe(code);
    expect(error.message).toMatch(text);
  });
});
