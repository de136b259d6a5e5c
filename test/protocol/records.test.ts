// Proves the records of the journal: each comes back as it was encoded, and one with a wrong entry is
// refused with an error that names the entry. The subject says the verb, so readers are told it.
import fc from "fast-check";
import { describe, expect, test } from "vitest";
import {
  decodeMessage,
  type Fields,
  type Message,
  packValue,
  sealMessage,
} from "../../src/protocol/codec.ts";
import { toConfig } from "../../src/protocol/config/index.ts";
import { DTYPES, type Dtype } from "../../src/protocol/dtypes.ts";
import { TRAINERS_PER_MESSAGE_MAX } from "../../src/protocol/limits.ts";
import {
  encodeHostRecord,
  type HostRecord,
  parseHostRecord,
} from "../../src/protocol/messages/host-records.ts";
import {
  draftRecord,
  parseRecordHeader,
  parseTrainerRecord,
  type TrainerRecord,
} from "../../src/protocol/messages/records.ts";
import { finiteNumber, positive, recordHeader, validId, validName } from "./arbitraries.ts";
import { codeOf } from "./refusal.ts";
import { testRefusals } from "./refused-fields.ts";

const dtype = fc.constantFrom(...(Object.keys(DTYPES) as Dtype[]));

/** The record as it is received. */
function sent(record: TrainerRecord, data: Uint8Array): TrainerRecord {
  const draft = draftRecord(record, data.length);
  draft.data.set(data);
  const message = decodeMessage(sealMessage(draft));
  expect([...message.data]).toEqual([...data]);
  return parsed(record.verb, message);
}

/** A message read as the fold does it: first what it begins with, then the rest. */
function parsed(verb: "init" | "push" | "set", message: Message): TrainerRecord {
  return parseTrainerRecord(verb, parseRecordHeader(message.fields), message);
}

function zeros(type: Dtype, elements: number): Uint8Array {
  return new Uint8Array(elements * DTYPES[type].bytes);
}

describe("trainers' records come back", () => {
  const body = fc.record({ epoch: positive, dtype });

  test("set", () => {
    fc.assert(
      fc.property(recordHeader, body, fc.integer({ min: 1, max: 9 }), (header, rest, elements) => {
        const record = { verb: "set", ...header, ...rest } as const;
        expect(sent(record, zeros(rest.dtype, elements))).toEqual(record);
      }),
    );
  });

  test("push", () => {
    const norm = fc.oneof(
      fc.constant({}),
      fc.record({ norm: fc.double({ min: 0 }) }),
      fc.constantFrom({ norm: Number.NaN }, { norm: 1 / 0 }),
    );
    const operation = fc.oneof(
      fc.record({ op: fc.constant("mix" as const), alpha: finiteNumber, beta: finiteNumber }),
      fc.record(
        { op: fc.constant("grad" as const), lr: finiteNumber, step: positive, seen: positive },
        { requiredKeys: ["op"] },
      ),
    );
    fc.assert(
      fc.property(recordHeader, body, norm, operation, (header, rest, length, what) => {
        const record = { verb: "push", ...header, ...rest, ...length, operation: what } as const;
        expect(sent(record, zeros(rest.dtype, 2))).toEqual(record);
      }),
    );
  });

  test("push of a part, encoded", () => {
    const part = fc.record(
      { rows: fc.integer({ min: 1 }), inner: fc.integer({ min: 1 }) },
      { requiredKeys: ["rows"] },
    );
    const encoding = fc.constantFrom("bfloat16" as const, "float16" as const);
    fc.assert(
      fc.property(recordHeader, positive, part, encoding, (header, epoch, counts, form) => {
        const record = {
          verb: "push",
          ...header,
          epoch,
          dtype: "float32",
          encoding: form,
          norm: 1.5,
          operation: { op: "mix", alpha: 1, beta: 2 },
          part: counts,
        } as const;
        expect(sent(record, new Uint8Array(3))).toEqual(record);
      }),
    );
  });

  test("init", () => {
    const shape = fc.array(fc.integer({ min: 1, max: 6 }), { maxLength: 4 });
    fc.assert(
      fc.property(
        recordHeader,
        body,
        shape,
        finiteNumber,
        fc.nat(),
        (header, rest, dims, lr, cut) => {
          const elements = dims.reduce((product, size) => product * size, 1);
          const start = cut % elements;
          const config = toConfig({ learningRate: lr, allowNonFinite: true });
          const place = { shape: dims, start, count: elements - start, config };
          const record = { verb: "init", ...header, ...rest, ...place } as const;
          expect(sent(record, zeros(rest.dtype, elements - start))).toEqual(record);
        },
      ),
    );
  });
});

describe("hosts' records come back", () => {
  test("rules, drop and floor", () => {
    fc.assert(
      fc.property(positive, validName, (number, parameter) => {
        for (const record of [
          { verb: "rules", rules: number },
          { verb: "drop", parameter, epoch: number },
          { verb: "floor", session: number },
        ] as const satisfies readonly HostRecord[]) {
          const message = decodeMessage(encodeHostRecord(record));
          expect(parseHostRecord(record.verb, message)).toEqual(record);
        }
      }),
    );
  });

  test("rules of a synchronized job, and members", () => {
    const trainers = fc.uniqueArray(validId, { maxLength: 20 });
    fc.assert(
      fc.property(positive, trainers, fc.boolean(), (number, ids, started) => {
        for (const record of [
          {
            verb: "rules",
            rules: number,
            synchronization: { mode: "sync", trainers: 4, backups: 1, reduce: "mean" },
          },
          { verb: "members", revision: number, started, trainers: ids },
        ] as const satisfies readonly HostRecord[]) {
          const message = decodeMessage(encodeHostRecord(record));
          expect(parseHostRecord(record.verb, message)).toEqual(record);
        }
      }),
    );
  });

  test("sessions and trainers to forget", () => {
    const row = fc.tuple(validId, positive);
    fc.assert(
      fc.property(positive, fc.array(row, { maxLength: 20 }), (upTo, trainers) => {
        for (const record of [
          { verb: "sessions", upTo, live: [1, upTo] },
          { verb: "forget", trainers },
        ] as const satisfies readonly HostRecord[]) {
          const message = decodeMessage(encodeHostRecord(record));
          expect(parseHostRecord(record.verb, message)).toEqual(record);
        }
      }),
    );
  });

  test.each([
    ["no list", {}],
    ["a row that is none", ["a"]],
    ["a row too long", [["a", 1, 1]]],
    ["no id", [[1, 1]]],
    ["an empty id", [["", 1]]],
    ["a session that nobody can have", [["a", 0]]],
    ["too many", Array(TRAINERS_PER_MESSAGE_MAX + 1).fill(["a", 1])],
  ])("but no trainers to forget that are %s", (_what, trainers) => {
    const message = { fields: {}, data: packValue(trainers) };
    expect(codeOf(() => parseHostRecord("forget", message))).toMatch(/^BAD_(MESSAGE|NAME)$/);
  });

  test.each<[HostRecord["verb"], Fields]>([
    ["members", { started: true }],
    ["members", { revision: 0, started: true }],
    ["members", { revision: 1, started: 1 }],
    ["rules", {}],
    ["rules", { rules: 0 }],
    ["rules", { rules: "1" }],
    ["drop", { epoch: 1 }],
    ["drop", { parameter: 7, epoch: 1 }],
    ["drop", { parameter: "w" }],
    ["drop", { parameter: "w", epoch: -1 }],
    ["floor", {}],
    ["floor", { session: 0.5 }],
  ])("but not %s with %o", (verb, fields) => {
    expect(codeOf(() => parseHostRecord(verb, { fields, data: new Uint8Array(0) }))).toBe(
      "BAD_MESSAGE",
    );
  });
});

const HEAD = { session: 3, n: 5, done: 2, reply: "", epoch: 1, dtype: "float32" };
const WRONG_HEAD = [
  ["session", undefined],
  ["session", 0],
  ["session", "3"],
  ["session", 2 ** 53],
  ["n", 0],
  ["n", 1.5],
  ["n", null],
  ["done", 5],
  ["done", -1],
  ["done", undefined],
  ["reply", undefined],
  ["reply", 7],
  ["reply", "x".repeat(513)],
  ["epoch", 0],
  ["epoch", true],
  ["dtype", "float8", "BAD_DTYPE"],
  ["dtype", 4, "BAD_DTYPE"],
  ["dtype", undefined, "BAD_DTYPE"],
] as const;

/** Reads a record of the verb with 8 tensor bytes. */
function reader(verb: "init" | "push" | "set"): (fields: Fields) => unknown {
  return (fields) => parsed(verb, { fields, data: new Uint8Array(8) });
}

describe("a set", () => {
  testRefusals(HEAD, reader("set"), WRONG_HEAD);

  test.each([0, 1, 2, 3, 5, 6, 7])("is refused with %i bytes of float32", (length) => {
    const message = { fields: HEAD, data: new Uint8Array(length) };
    expect(codeOf(() => parsed("set", message))).toBe("BAD_LENGTH");
  });

  test("is refused with half an element of eight bytes", () => {
    const message = { fields: { ...HEAD, dtype: "int64" }, data: new Uint8Array(12) };
    expect(codeOf(() => parsed("set", message))).toBe("BAD_LENGTH");
  });
});

describe("a push", () => {
  const mix = { ...HEAD, norm: 1, op: "mix", alpha: 1, beta: 0.5 };
  testRefusals(mix, reader("push"), [
    ...WRONG_HEAD,
    ["norm", "1"],
    ["op", undefined],
    ["op", "add"],
    ["op", 1],
    ["alpha", undefined],
    ["alpha", "1"],
    ["alpha", Number.NaN, "BAD_VALUE"],
    ["alpha", Number.POSITIVE_INFINITY, "BAD_VALUE"],
    ["beta", undefined],
    ["beta", Number.NEGATIVE_INFINITY, "BAD_VALUE"],
  ]);

  describe("of a gradient", () => {
    testRefusals({ ...HEAD, norm: 1, op: "grad" }, reader("push"), [
      ["lr", "0.1"],
      ["lr", null],
      ["lr", Number.NaN, "BAD_VALUE"],
    ]);
  });
});

describe("an init", () => {
  const init = { ...HEAD, shape: [4], start: 1, count: 2, config: {} };
  testRefusals(init, reader("init"), [
    ...WRONG_HEAD,
    ["shape", undefined],
    ["shape", "4"],
    ["shape", new Array(65).fill(1)],
    ["shape", [0], "BAD_SHAPE"],
    ["shape", ["4"], "BAD_SHAPE"],
    ["shape", new Array(33).fill(1), "BAD_SHAPE"],
    ["start", 4],
    ["start", -1],
    ["count", 0],
    ["count", 4],
    ["config", undefined],
    ["config", []],
    ["config", { optimizer: "lbfgs" }, "BAD_CONFIG"],
    ["config", { momentum: 1 }, "BAD_CONFIG"],
  ]);

  test("is refused with more or fewer bytes than its count says", () => {
    for (const length of [4, 12, 16]) {
      const message = { fields: init, data: new Uint8Array(length) };
      expect(codeOf(() => parsed("init", message))).toBe("BAD_LENGTH");
    }
  });
});
