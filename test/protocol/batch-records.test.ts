// Proves batch records: what is written comes back entry by entry, and whatever is malformed is refused
// with a code that names the group or the block, without reading more than the limits allow. Fuzzed: any
// change of a header ends in entries or in such a code.
import fc from "fast-check";
import { describe, expect, test } from "vitest";
import {
  decodeMessage,
  decodeSealed,
  encodeMessage,
  type Fields,
  sealMessage,
} from "../../src/protocol/codec.ts";
import { toConfig } from "../../src/protocol/config/index.ts";
import { PserverError } from "../../src/protocol/errors.ts";
import { BATCH_ENTRIES_MAX } from "../../src/protocol/limits.ts";
import {
  type BatchEntry,
  type BatchItem,
  draftBatch,
  GROUPS_KEY,
  paddedBytes,
  parseBatch,
  readBatch,
} from "../../src/protocol/messages/batch-records.ts";
import {
  parseRecordHeader,
  type RecordHeader,
  type TrainerRecord,
} from "../../src/protocol/messages/records.ts";
import { MsgpackReader } from "../../src/protocol/msgpack.ts";
import { validName } from "./arbitraries.ts";
import { codeOf, refusalOf } from "./refusal.ts";

const HEAD: RecordHeader = { session: 3, n: 7, done: 2, reply: "_INBOX_j.t.applied" };
const CONFIG = toConfig({ optimizer: "none" });

function parse(payload: Uint8Array, entriesMax: number = BATCH_ENTRIES_MAX): BatchEntry[] {
  const message = decodeMessage(payload);
  return parseBatch(parseRecordHeader(message.fields), message, entriesMax);
}

function written(items: readonly BatchItem[]): Uint8Array {
  const draft = draftBatch(HEAD, items);
  let at = 0;
  items.forEach(({ dataBytes }, i) => {
    draft.data.fill(1 + (i % 200), at, at + dataBytes);
    at += paddedBytes(dataBytes);
  });
  return sealMessage(draft);
}

const epoch = fc.integer({ min: 1, max: 5 });
const push = fc.record({
  seen: fc.array(fc.nat(3), { minLength: 4, maxLength: 4 }),
  epoch,
  encoding: fc.constantFrom(undefined, "bfloat16" as const),
  norm: fc.option(fc.double().map(Math.abs), { nil: undefined }),
  lr: fc.option(fc.constantFrom(0.5, -1), { nil: undefined }),
  part: fc.constantFrom(undefined, { rows: 2 }, { rows: 1, inner: 3 }),
});

/** The entries of one parameter: a group, with the step that all groups of the batch share. */
function groupOf(parameter: string, step: number | undefined): fc.Arbitrary<BatchItem[]> {
  const indexes = fc
    .uniqueArray(fc.nat(999), { minLength: 1, maxLength: 4 })
    .map((list) => [...list].sort((a, b) => a - b));
  const record = fc.oneof(
    push.map(({ seen, epoch, encoding, norm, lr, part }) => (place: number): TrainerRecord => {
      const version = seen[place] === 0 ? undefined : seen[place];
      const operation = { op: "grad", lr, step, seen: version } as const;
      return { verb: "push", ...HEAD, epoch, dtype: "float32", encoding, norm, operation, part };
    }),
    push.map(({ epoch, norm }) => (): TrainerRecord => {
      const operation = { op: "mix", alpha: 0.5, beta: 2 } as const;
      const [encoding, part] = [undefined, undefined];
      return { verb: "push", ...HEAD, epoch, dtype: "float32", encoding, norm, operation, part };
    }),
    epoch.map((epoch) => (): TrainerRecord => ({ verb: "set", ...HEAD, epoch, dtype: "float32" })),
    epoch.map((epoch) => (place: number): TrainerRecord => {
      const shape = [100];
      const [start, count] = [10 * place, 3];
      return {
        verb: "init",
        ...HEAD,
        epoch,
        dtype: "float32",
        shape,
        start,
        count,
        config: CONFIG,
      };
    }),
  );
  return fc
    .tuple(indexes, record)
    .map(([list, toRecord]) =>
      list.map((index, place) => ({ parameter, index, record: toRecord(place), dataBytes: 12 })),
    );
}

const batch = fc
  .tuple(
    fc.uniqueArray(validName, { minLength: 1, maxLength: 4 }),
    fc.option(fc.integer({ min: 1, max: 9 }), { nil: undefined }),
  )
  .chain(([names, step]) => fc.tuple(...names.map((name) => groupOf(name, step))))
  .map((groups) => groups.flat());

test("entries come back, each with its bytes", () => {
  fc.assert(
    fc.property(batch, (items) => {
      const entries = parse(written(items));
      expect(entries.map(({ parameter, index }) => [parameter, index])).toEqual(
        items.map(({ parameter, index }) => [parameter, index]),
      );
      // A batch has one step: gradients of a batch without any step have none.
      const step = items.map(({ record }) => stepOf(record)).find((found) => found !== undefined);
      expect(entries.map(({ record }) => record)).toEqual(
        items.map(({ record }) => withStep(record, step)),
      );
      entries.forEach(({ data }, i) => {
        expect([...data]).toEqual(new Array(12).fill(1 + (i % 200)));
      });
    }),
  );
});

function stepOf(record: TrainerRecord): number | undefined {
  return record.verb === "push" && record.operation.op === "grad"
    ? record.operation.step
    : undefined;
}

function withStep(record: TrainerRecord, step: number | undefined): TrainerRecord {
  if (record.verb !== "push" || record.operation.op !== "grad") return record;
  return { ...record, operation: { ...record.operation, step } };
}

/** A group of two blocks of 4 and 8 bytes, which is as it should be. */
const GROUP: Fields = {
  verb: "push",
  parameter: "w",
  epoch: 1,
  dtype: "float32",
  op: "grad",
  blocks: [
    [0, 4],
    [2, 8],
  ],
};
const DATA = Uint8Array.of(1, 2, 3, 4, 0, 0, 0, 0, 1, 2, 3, 4, 5, 6, 0, 0);
const INIT: Fields = {
  ...{ verb: "init", parameter: "w", epoch: 1, dtype: "float32", shape: [4], config: CONFIG },
  blocks: [[0, 16, 0]],
};

function message(groups: unknown, data: Uint8Array = DATA, more: Fields = {}): Uint8Array {
  return encodeMessage({ ...HEAD, ...more, groups }, data);
}

test("a group as it should be is taken", () => {
  expect(parse(message([GROUP]))).toHaveLength(2);
  expect(parse(message([INIT]))).toMatchObject([{ record: { start: 0, count: 4 } }]);
});

describe("refused", () => {
  test.each<[string, Fields, string, RegExp]>([
    ["no groups", { groups: [] }, "BAD_MESSAGE", /^groups: /],
    ["groups that are no list", { groups: 7 }, "BAD_MESSAGE", /^groups: /],
    ["a group that is no map", { groups: [GROUP, 7] }, "BAD_MESSAGE", /^groups\[1\]: group: /],
    ["a step of 0", { groups: [GROUP], step: 0 }, "BAD_MESSAGE", /^step: /],
    ["a parameter in two groups", { groups: [GROUP, GROUP] }, "BAD_MESSAGE", /^groups\[1\]: /],
  ])("%s", (_what, fields, code, text) => {
    const error = refusalOf(() => parse(encodeMessage({ ...HEAD, ...fields }, DATA)));
    expect(error.code).toBe(code);
    expect(error.message).toMatch(text);
  });

  test.each<[keyof typeof GROUP, unknown, string?]>([
    ["verb", "clock"],
    ["verb", undefined],
    ["parameter", 7],
    ["parameter", "x".repeat(201)],
    ["epoch", 0],
    ["dtype", "float128", "BAD_DTYPE"],
    ["encoding", "zip", "BAD_DTYPE"],
    ["norm", "large"],
    ["op", "subtract"],
    ["lr", Number.NaN, "BAD_VALUE"],
    ["blocks", []],
    ["blocks", 7],
    ["seen", [1]],
    ["seen", [1, 2, 3]],
    ["seen", 7],
  ])("a group with %s %j", (key, value, code = "BAD_MESSAGE") => {
    const { [key]: _key, ...rest } = GROUP;
    const group = value === undefined ? rest : { ...GROUP, [key]: value };
    const error = refusalOf(() => parse(message([group])));
    expect(error.code).toBe(code);
    expect(error.message).toMatch(new RegExp(`^groups\\[0\\]: .*${key}`));
  });

  test.each<[string, unknown, string]>([
    ["no list", 7, "BAD_MESSAGE"],
    ["no length", [2], "BAD_MESSAGE"],
    ["a negative number", [-1, 8], "BAD_MESSAGE"],
    ["a number that is no whole one", [1.5, 8], "BAD_MESSAGE"],
    ["the number before it", [0, 8], "BAD_MESSAGE"],
    ["no bytes", [2, 0], "BAD_MESSAGE"],
    ["a negative length", [2, -8], "BAD_MESSAGE"],
    ["bytes that are no whole elements", [2, 6], "BAD_LENGTH"],
    ["more bytes than there are", [2, 12], "BAD_LENGTH"],
    ["a length beyond all numbers", [2, 2 ** 60], "BAD_MESSAGE"],
    ["no rows", [2, 8, 0], "BAD_MESSAGE"],
    ["no offsets", [2, 8, 1, 0], "BAD_MESSAGE"],
    ["too many rows", [2, 8, 2 ** 31 + 1], "BAD_MESSAGE"],
    ["a number too many", [2, 8, 1, 1, 1], "BAD_MESSAGE"],
  ])("a block with %s", (_what, row, code) => {
    const error = refusalOf(() => parse(message([{ ...GROUP, blocks: [[0, 4], row] }])));
    expect(error.code).toBe(code);
    expect(error.message).toMatch(/^groups\[0\]\.blocks\[1\]: /);
  });

  test.each<[string, unknown, string]>([
    ["no start", [0, 16], "BAD_MESSAGE"],
    ["a start behind the end", [0, 16, 4], "BAD_MESSAGE"],
    ["more elements than there are", [0, 16, 1], "BAD_LENGTH"],
  ])("an init with %s", (_what, row, code) => {
    const error = refusalOf(() => parse(message([{ ...INIT, blocks: [row] }])));
    expect(error.code).toBe(code);
    expect(error.message).toMatch(/^groups\[0\]\.blocks\[0\]: /);
  });

  test("a set of a part", () => {
    const group = { ...GROUP, verb: "set", blocks: [[0, 16, 1]] };
    expect(refusalOf(() => parse(message([group]))).message).toMatch(/^groups\[0\]\.blocks\[0\]: /);
  });

  test("an entry of seen that is no version", () => {
    const error = refusalOf(() => parse(message([{ ...GROUP, seen: [0, -1] }])));
    expect(error.message).toMatch(/^groups\[0\]\.blocks\[1\]: seen: /);
  });

  test("bytes after the last entry, and bytes that end in it", () => {
    expect(codeOf(() => parse(message([GROUP], new Uint8Array(24))))).toBe("BAD_LENGTH");
    for (let length = 0; length < DATA.length; length++) {
      expect(codeOf(() => parse(message([GROUP], DATA.subarray(0, length))))).toBe("BAD_LENGTH");
    }
  });

  test("padding that is not zero", () => {
    const error = refusalOf(() => parse(message([GROUP], DATA.with(6, 1))));
    expect(error.code).toBe("BAD_MESSAGE");
    expect(error.message).toMatch(/^groups\[0\]\.blocks\[0\]: expected zeros/);
  });

  test("more entries than a batch takes, over all groups", () => {
    const other = { ...GROUP, parameter: "x" };
    const twice = Uint8Array.of(...DATA, ...DATA);
    expect(parse(message([GROUP, other], twice), 4)).toHaveLength(4);
    const error = refusalOf(() => parse(message([GROUP, other], twice), 3));
    expect(error.code).toBe("TOO_LARGE");
    expect(error.message).toMatch(/^groups\[1\]\.blocks\[1\]: /);
    expect(codeOf(() => parse(message([GROUP]), 1))).toBe("BAD_MESSAGE");
  });
});

test("whatever is changed in a header, it ends in entries or in a refusal", () => {
  fc.assert(
    fc.property(
      batch,
      fc.array(fc.tuple(fc.nat(), fc.nat(255)), { minLength: 1, maxLength: 4 }),
      (items, changes) => {
        const bytes = written(items).slice();
        for (const [at, value] of changes) bytes[10 + (at % (bytes.length - 10))] = value;
        try {
          // Whoever means harm computes the checksum.
          const { fields, data } = decodeSealed(bytes);
          const entries = parseBatch(
            parseRecordHeader(fields),
            { fields, data },
            BATCH_ENTRIES_MAX,
          );
          const total = entries.reduce((sum, entry) => sum + paddedBytes(entry.data.length), 0);
          expect(total).toBe(data.length);
        } catch (error) {
          expect(error).toBeInstanceOf(PserverError);
          expect((error as PserverError).code).not.toBe("INTERNAL");
        }
      },
    ),
    { numRuns: 500 },
  );
});

test("groups that are left unread give the same entries", () => {
  fc.assert(
    fc.property(batch, (items) => {
      const bytes = written(items);
      const { fields, data } = decodeSealed(bytes, bytes.length, GROUPS_KEY);
      const entries = parseBatch(parseRecordHeader(fields), { fields, data }, BATCH_ENTRIES_MAX);
      expect(entries).toEqual(parse(bytes));
    }),
  );
});

test("nothing is read behind the entry that nobody asks for", () => {
  const malformed = { ...GROUP, parameter: "x", verb: "none" };
  const bytes = message([GROUP, malformed]);
  const { fields, data } = decodeSealed(bytes, bytes.length, GROUPS_KEY);
  const entries = readBatch(parseRecordHeader(fields), { fields, data }, BATCH_ENTRIES_MAX);
  expect(entries.next().value).toMatchObject({ parameter: "w" });
  expect(entries.next().value).toMatchObject({ parameter: "w" });
  expect(refusalOf(() => entries.next()).message).toMatch(/^groups\[1\]: /);
});

test.each([
  ["announces more values than there are bytes", Uint8Array.of(0xdd, 0, 1, 0, 0), /announced/],
  ["ends early", Uint8Array.of(0x91, 0xda, 0, 9, 1), /1 bytes where 9 are announced/],
  ["has a type that the protocol does not use", Uint8Array.of(0x91, 0xc1), /type 0xc1/],
])("a list that is left unread and %s is refused", (_what, bytes, text) => {
  const reader = new MsgpackReader(bytes);
  const error = refusalOf(() => reader.unread(1));
  expect(error.code).toBe("BAD_MESSAGE");
  expect(error.message).toMatch(text);
});

test("values behind the limit of a header are not read", () => {
  const payload = message([GROUP]);
  const headBytes = payload.length - DATA.length;
  expect(decodeSealed(payload, headBytes).data).toEqual(DATA);
  const huge = message(Array.from({ length: 100_000 }, () => [1, 2]));
  expect(codeOf(() => decodeSealed(huge, 1000))).toBe("BAD_MESSAGE");
});
