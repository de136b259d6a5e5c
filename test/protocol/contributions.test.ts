// Proves that what is said of contributions and fragments is read as it was written, and that what nobody may say is refused.
import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { decodeMessage, encodeMessage, sealMessage } from "../../src/protocol/codec.ts";
import {
  type Contribution,
  draftContribution,
  encodeFragmentsReply,
  encodeFragmentsRequest,
  parseContribution,
  parseFragmentsReply,
  parseFragmentsRequest,
} from "../../src/protocol/messages/contributions.ts";
import { codeOf } from "./refusal.ts";

const HEADER = { session: 1, n: 1, done: 0, reply: "" };
const SAID: Contribution = {
  fragment: "f0",
  base: 3,
  steps: 4,
  tokens: 5,
  stepMs: 6.5,
  form: "parameters",
  id: 7,
  part: 1,
  parts: 2,
};

const RUN = {
  ...({ verb: "push", dtype: "float32", encoding: undefined, operation: { op: "grad" } } as const),
  numbers: Uint32Array.of(1),
  counts: Uint32Array.of(2),
  ...{ parts: undefined, norms: undefined, seen: undefined },
};

test("a contribution is read as it was written", () => {
  const { draft } = draftContribution(HEADER, SAID, [RUN]);
  expect(parseContribution(decodeMessage(sealMessage(draft)).fields)).toEqual(SAID);
});

describe("a contribution is refused", () => {
  test.each([
    ["with no fragment", { fragment: "" }],
    ["with too long a name", { fragment: "f".repeat(101) }],
    ["with a base that is no version", { base: 0.5 }],
    ["with a negative number of tokens", { tokens: -1 }],
    ["with a step time that is no number", { stepMs: Number.NaN }],
    ["in another form", { form: "gradient" }],
    ["with more parts than there may be", { parts: 1025 }],
    ["with a part behind the last one", { part: 2 }],
  ])("%s", (_what, wrong) => {
    const fields = { contribution: { ...SAID, ...wrong } };
    expect(codeOf(() => parseContribution(decodeMessage(encodeMessage(fields)).fields))).toBe(
      "BAD_MESSAGE",
    );
  });

  test("whatever its entries are, with no other error", () => {
    fc.assert(
      fc.property(fc.dictionary(fc.constantFrom(...Object.keys(SAID)), fc.anything()), (wrong) => {
        expect(codeOf(() => parseContribution({ contribution: wrong }))).toBe("BAD_MESSAGE");
      }),
    );
  });
});

test("requests and replies about fragments are read as they were written", () => {
  const at = { generation: 1, seq: 9 };
  for (const wanted of [
    {},
    { fragment: "f", version: 3 },
    { fragment: "f", version: 3, member: true },
  ]) {
    const request = { ...at, ...wanted, waitMs: 10 };
    expect(parseFragmentsRequest(decodeMessage(encodeFragmentsRequest(request)).fields)).toEqual(
      request,
    );
  }
  const tally = (contributions: number) => ({ contributions, steps: 2, tokens: 3 });
  const account = { processed: tally(6), merged: tally(3), late: tally(2), dropped: tally(1) };
  const reply = {
    ...at,
    fragments: [
      ["a", 0, true],
      ["b", 7, false],
    ] as const,
    account,
  };
  expect(parseFragmentsReply(decodeMessage(encodeFragmentsReply(reply)))).toEqual(reply);
});
