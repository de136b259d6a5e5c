// Proves batched reads: they come back as they were encoded, entries of one parameter in one group; what is
// malformed is refused by the name of the entry, whatever was changed in it; headers and lists have limits.
import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { encodeMessage, sealMessage } from "../../src/protocol/codec.ts";
import { PserverError } from "../../src/protocol/errors.ts";
import { BATCH_ENTRIES_MAX, BATCH_HEAD_BYTES_MAX } from "../../src/protocol/limits.ts";
import { partCounts, readPackedIndex } from "../../src/protocol/messages/parts.ts";
import {
  type BatchReadHeader,
  decodeBatchRead,
  encodeBatchRead,
  entryLabel,
  PULL_WAIT_MS_MAX,
  type WantedEntry,
} from "../../src/protocol/messages/reads.ts";

import { anyPart } from "../actors/fold/arbitrary-parts.ts";
import { counter, positive, validName } from "./arbitraries.ts";
import { codeOf, refusalOf } from "./refusal.ts";

const HEAD: BatchReadHeader = { generation: 1, seq: 0, waitMs: 0 };
const ROWS = { rows: 9, rowElements: 4 };
const WIDE = { rows: 70_000, rowElements: 2 };

const header: fc.Arbitrary<BatchReadHeader> = fc.record(
  {
    generation: positive,
    seq: counter,
    waitMs: fc.nat(PULL_WAIT_MS_MAX),
    step: counter,
    encoding: fc.constantFrom("bfloat16" as const, "float16" as const),
  },
  { requiredKeys: ["generation", "seq", "waitMs"] },
);

const entry: fc.Arbitrary<WantedEntry> = fc
  .record({
    parameter: fc.oneof(fc.constantFrom("a", "b"), validName),
    epoch: fc.constantFrom(1, 2),
    block: fc.nat(100_000),
    isWide: fc.boolean(),
    part: anyPart(ROWS.rows, ROWS.rowElements),
    isPart: fc.boolean(),
    have: fc.oneof(fc.constant(0), counter),
  })
  .map(({ isPart, isWide, part, ...rest }) => {
    const index = isWide ? { rows: part.rows.map((row) => row * 7_000) } : part;
    return { ...rest, rows: isWide ? WIDE : ROWS, index: isPart ? index : undefined };
  });

const entries = fc.array(entry, { minLength: 1, maxLength: 20 });

describe("a batched read", () => {
  test("comes back, with the indices of its parts", () => {
    fc.assert(
      fc.property(header, entries, fc.nat(19), (given, wanted, number) => {
        const from = number % wanted.length;
        const read = decodeBatchRead(encodeBatchRead({ ...given, from }, wanted));
        expect(read).toMatchObject({ ...given, from });
        expect(read.entries).toHaveLength(wanted.length);
        let { data } = read;
        wanted.forEach(({ parameter, epoch, block, index, rows, have }, i) => {
          const part = index === undefined ? undefined : partCounts(index);
          expect(read.entries[i]).toMatchObject({ parameter, epoch, block, part, have });
          if (index === undefined) return;
          const { elements, ...numbers } = readPackedIndex(partCounts(index), data, rows);
          expect(numbers).toEqual(index);
          data = elements;
        });
        expect(data).toHaveLength(0);
      }),
    );
  });

  test("has one group for entries of one parameter that follow each other", () => {
    const of = (parameter: string, block: number, epoch = 1): WantedEntry => {
      return { parameter, epoch, block, index: undefined, rows: ROWS, have: 0 };
    };
    const wanted = [of("a", 0), of("a", 1), of("b", 0), of("b", 1, 2), of("a", 2)];
    const places = decodeBatchRead(encodeBatchRead(HEAD, wanted)).entries.map(entryLabel);
    expect(places).toEqual([
      "groups[0].blocks[0]",
      "groups[0].blocks[1]",
      "groups[1].blocks[0]",
      "groups[2].blocks[0]",
      "groups[3].blocks[0]",
    ]);
  });

  test("with changed bytes is refused as such, or is another valid one", () => {
    const change = fc.record({ at: fc.double({ min: 0, max: 1 }), to: fc.nat(255) });
    fc.assert(
      fc.property(header, entries, fc.array(change, { minLength: 1 }), (given, wanted, changes) => {
        const bytes = encodeBatchRead(given, wanted);
        for (const { at, to } of changes) bytes[10 + Math.floor(at * (bytes.length - 11))] = to;
        try {
          const read = decodeBatchRead(sealMessage({ bytes, data: bytes }));
          expect(read.entries.length).toBeGreaterThan(0);
        } catch (error) {
          expect(error).toBeInstanceOf(PserverError);
          expect((error as PserverError).code).not.toBe("INTERNAL");
        }
      }),
      { numRuns: 500 },
    );
  });
});

describe("a batched read is refused", () => {
  const block = { parameter: "w", epoch: 1, blocks: [[0]] };
  const groupCases: [string, unknown, string, string][] = [
    ["without groups", undefined, "BAD_MESSAGE", "groups"],
    ["with no group", [], "EMPTY", "at least one block"],
    ["with a group that is no map", [block, 5], "BAD_MESSAGE", "groups[1]"],
    ["with a group of no block", [block, { ...block, blocks: [] }], "EMPTY", "groups[1]"],
    ["with a group without a name", [{ ...block, parameter: 7 }], "BAD_MESSAGE", "groups[0]"],
    ["with a group of epoch 0", [block, { ...block, epoch: 0 }], "BAD_MESSAGE", "groups[1]: epoch"],
    [
      "with a block that is no list",
      [{ ...block, blocks: [0] }],
      "BAD_MESSAGE",
      "groups[0].blocks[0]",
    ],
    ["with an empty block", [{ ...block, blocks: [[]] }], "BAD_MESSAGE", "groups[0].blocks[0]"],
    [
      "with a negative block",
      [{ ...block, blocks: [[0], [-1]] }],
      "BAD_MESSAGE",
      "groups[0].blocks[1]",
    ],
    [
      "with a block and a half",
      [{ ...block, blocks: [[0.5]] }],
      "BAD_MESSAGE",
      "groups[0].blocks[0]",
    ],
    [
      "with a part of no rows",
      [block, { ...block, blocks: [[0, 0]] }],
      "BAD_MESSAGE",
      "groups[1].blocks[0]",
    ],
    [
      "with a part of no elements",
      [{ ...block, blocks: [[0, 1, 0]] }],
      "BAD_MESSAGE",
      "groups[0].blocks[0]",
    ],
    [
      "with too long a block",
      [{ ...block, blocks: [[0, 1, 1, 1]] }],
      "BAD_MESSAGE",
      "groups[0].blocks[0]",
    ],
    ["with too few versions", [{ ...block, have: [] }], "BAD_MESSAGE", "groups[0]: have"],
    ["with too many versions", [{ ...block, have: [1, 1] }], "BAD_MESSAGE", "groups[0]: have"],
    ["with a negative version", [{ ...block, have: [-1] }], "BAD_MESSAGE", "groups[0]: have"],
  ];

  test.each(groupCases)("%s", (_what, groups, code, text) => {
    const error = refusalOf(() => decodeBatchRead(encodeMessage({ ...HEAD, groups })));
    expect(error.code).toBe(code);
    expect(error.message).toContain(text);
  });

  test.each([
    ["generation", 0],
    ["seq", -1],
    ["waitMs", PULL_WAIT_MS_MAX + 1],
    ["step", -1],
    ["from", 1],
    ["from", -1],
  ])("with %s %d", (key, value) => {
    const fields = { ...HEAD, groups: [block], [key]: value };
    const error = refusalOf(() => decodeBatchRead(encodeMessage(fields)));
    expect(error.code).toBe("BAD_MESSAGE");
    expect(error.message).toContain(key);
  });

  test("with one entry more than the limit, in one group or in many", () => {
    const row = Array.from({ length: BATCH_ENTRIES_MAX }, () => [0]);
    const full = [{ ...block, blocks: row }];
    expect(decodeBatchRead(encodeMessage({ ...HEAD, groups: full })).entries).toHaveLength(
      BATCH_ENTRIES_MAX,
    );
    for (const groups of [[{ ...block, blocks: [...row, [0]] }], [...full, block]]) {
      expect(codeOf(() => decodeBatchRead(encodeMessage({ ...HEAD, groups })))).toBe("TOO_LARGE");
    }
    const groups = Array.from({ length: BATCH_ENTRIES_MAX + 1 }, () => block);
    expect(codeOf(() => decodeBatchRead(encodeMessage({ ...HEAD, groups })))).toBe("TOO_LARGE");
  });

  test("with a longer header than the limit", () => {
    const long = "x".repeat(BATCH_HEAD_BYTES_MAX);
    const bytes = encodeMessage({ ...HEAD, groups: [block], long });
    expect(codeOf(() => decodeBatchRead(bytes))).toBe("TOO_LARGE");
  });
});
