// Proves answers, outcome requests and positions: they come back as they were encoded, wrong entries
// are refused by name, and of two positions the later one is found, whichever is given first.
import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { decodeMessage } from "../../src/protocol/codec.ts";
import { ERROR_CODES, type ErrorCode, PserverError } from "../../src/protocol/errors.ts";
import { PAYLOAD_BYTES_MIN } from "../../src/protocol/limits.ts";
import {
  encodeAnswers,
  encodeError,
  encodeOutcomeRequest,
  type Outcome,
  outcomeRow,
  parseAnswers,
  parseOutcomeRequest,
  parseOutcomeRow,
} from "../../src/protocol/messages/outcomes.ts";
import { laterPosition, parsePosition } from "../../src/protocol/messages/position.ts";
import { counter, positive } from "./arbitraries.ts";
import { codeOf, refusalOf } from "./refusal.ts";
import { testRefusals } from "./refused-fields.ts";

const codes = fc.constantFrom(...(Object.keys(ERROR_CODES) as ErrorCode[]));
const outcome: fc.Arbitrary<Outcome> = fc.oneof(
  fc.record({ n: positive, seq: counter, version: counter }),
  fc.record({
    n: positive,
    seq: counter,
    version: counter,
    code: codes,
    message: fc.string({ unit: "grapheme", maxLength: 200 }),
  }),
);
const guarded: fc.Arbitrary<Outcome> = fc.record({
  ...{ n: positive, seq: counter, version: counter },
  guard: fc.record({
    action: fc.constantFrom("clip" as const, "set-aside" as const),
    norm: fc.double({ noNaN: true, noDefaultInfinity: true, min: 0, max: 1e300 }),
    limit: fc.double({ noNaN: true, noDefaultInfinity: true, min: 0.5, max: 1e300 }),
  }),
});
const position = fc.record({ generation: positive, seq: counter });

describe("answers", () => {
  test("come back", () => {
    const answers = fc.record({
      shard: fc.nat(255),
      generation: positive,
      session: positive,
      outcomes: fc.array(fc.oneof(outcome, guarded), { maxLength: 30 }),
    });
    fc.assert(
      fc.property(answers, (given) => {
        expect(parseAnswers(decodeMessage(encodeAnswers(given)))).toEqual(given);
      }),
    );
  });

  test("that would be larger than a message may be come back with shorter texts", () => {
    // Each character has four bytes and two code units, so that a cut can hit the middle of one.
    const message = "\u{1F4A5}".repeat(200);
    const outcomes = Array.from(
      { length: 1024 },
      (_, i): Outcome =>
        i % 2 === 0
          ? { n: i + 1, seq: i, version: 0, code: "NON_FINITE", message }
          : { n: i + 1, seq: i, version: 7 },
    );
    const answers = { shard: 1, generation: 1, session: 1, outcomes };
    const bytes = encodeAnswers(answers, PAYLOAD_BYTES_MIN);
    expect(bytes.length).toBeLessThanOrEqual(PAYLOAD_BYTES_MIN);
    const received = parseAnswers(decodeMessage(bytes));
    expect(received.outcomes.map(({ message: _, ...others }) => others)).toEqual(
      outcomes.map(({ message: _, ...others }) => others),
    );
    const text = received.outcomes[0]?.message ?? "";
    expect(text.length).toBeGreaterThan(100);
    expect(message.startsWith(text.replace(/\uFFFD$/, ""))).toBe(true);
    // Even where no text fits at all.
    const small = parseAnswers(decodeMessage(encodeAnswers(answers, 1)));
    expect(small.outcomes[0]).toMatchObject({ code: "NON_FINITE", message: "" });
  });

  test("may be an error instead, which is thrown", () => {
    const message = decodeMessage(encodeError(new PserverError("BUSY", "later")));
    expect(codeOf(() => parseAnswers(message))).toBe("BUSY");
  });

  const good = { shard: 1, generation: 1, session: 1, outcomes: [[1, 2, 3]] };
  testRefusals(
    good,
    (fields) => parseAnswers({ fields, data: new Uint8Array(0) }),
    [
      ["shard", -1],
      ["shard", undefined],
      ["generation", 0],
      ["session", 0],
      ["outcomes", undefined],
      ["outcomes", {}],
      ["outcomes", new Array(1025).fill([1, 2, 3])],
      ["outcomes", [7]],
      ["outcomes", [[0, 2, 3]]],
      ["outcomes", [[1, 2]]],
    ],
    { outcomes: "" },
  );
});

describe("an outcome", () => {
  test.each<[string, unknown]>([
    ["outcome", { n: 1 }],
    ["n", [0, 1, 1]],
    ["n", ["1", 1, 1]],
    ["seq", [1, -1, 1]],
    ["seq", [1]],
    ["version", [1, 1, 0.5]],
    ["code", [1, 1, 0, 7, ""]],
    ["code", [1, 1, 0, null, ""]],
    ["guard", [1, 1, 0, ["explode", 2, 1]]],
    ["norm", [1, 1, 0, ["clip", "2", 1]]],
    ["limit", [1, 1, 0, ["clip", 2]]],
    ["message", [1, 1, 0, "BUSY"]],
    ["message", [1, 1, 0, "BUSY", "x".repeat(4097)]],
  ])("with a wrong %s is refused: %o", (what, row) => {
    const error = refusalOf(() => parseOutcomeRow(row));
    expect(error.code).toBe("BAD_MESSAGE");
    expect(error.message).toContain(`${what}: expected`);
  });

  test("with a code that is not known here is INTERNAL, with its text", () => {
    expect(parseOutcomeRow([1, 2, 0, "TOO_CLEVER", "no"])).toEqual({
      n: 1,
      seq: 2,
      version: 0,
      code: "INTERNAL",
      message: "no",
    });
  });

  test("has five entries if it is a rejection, four if a guard has changed it, else three", () => {
    const guard = { action: "clip", norm: 8, limit: 2 } as const;
    expect(outcomeRow({ n: 1, seq: 2, version: 3, guard })).toEqual([1, 2, 3, ["clip", 8, 2]]);
    expect(outcomeRow({ n: 1, seq: 2, version: 3 })).toEqual([1, 2, 3]);
    expect(outcomeRow({ n: 1, seq: 2, version: 0, code: "BUSY" })).toEqual([1, 2, 0, "BUSY", ""]);
  });
});

describe("an outcome request", () => {
  test("comes back", () => {
    const request = fc.record({
      session: positive,
      numbers: fc.array(positive, { maxLength: 1024 }),
      generation: positive,
      seq: counter,
    });
    fc.assert(
      fc.property(request, (given) => {
        const { fields } = decodeMessage(encodeOutcomeRequest(given));
        expect(parseOutcomeRequest(fields)).toEqual(given);
      }),
      { numRuns: 30 },
    );
  });

  testRefusals(
    { session: 1, numbers: [1], generation: 1, seq: 1 },
    parseOutcomeRequest,
    [
      ["session", undefined],
      ["numbers", undefined],
      ["numbers", new Array(1025).fill(1)],
      ["numbers", [0]],
      ["numbers", ["1"]],
      ["generation", 0],
      ["seq", -1],
      ["seq", undefined],
    ],
    { numbers: "n" },
  );
});

describe("positions", () => {
  test("are read from any message that has them", () => {
    fc.assert(
      fc.property(position, (given) => {
        expect(parsePosition({ ...given, more: 1 })).toEqual(given);
      }),
    );
  });

  test("have an order, the generation first", () => {
    fc.assert(
      fc.property(position, position, (a, b) => {
        const later = laterPosition(a, b);
        expect(laterPosition(b, a)).toEqual(later);
        expect([a, b]).toContainEqual(later);
        for (const { generation, seq } of [a, b]) {
          expect(later.generation).toBeGreaterThanOrEqual(generation);
          if (generation === later.generation) expect(later.seq).toBeGreaterThanOrEqual(seq);
        }
      }),
    );
    const start = { generation: 1, seq: 0 };
    expect(laterPosition(undefined, start)).toBe(start);
    expect(laterPosition({ generation: 1, seq: 9 }, { generation: 2, seq: 0 }).generation).toBe(2);
  });
});
