// Proves step requests and their replies: they come back as they were encoded, and wrong entries are
// refused by name.
import fc from "fast-check";
import { expect, test } from "vitest";
import { decodeMessage, encodeMessage } from "../../src/protocol/codec.ts";
import { PserverError } from "../../src/protocol/errors.ts";
import { encodeError } from "../../src/protocol/messages/outcomes.ts";
import {
  encodeStepReply,
  encodeStepRequest,
  PULL_WAIT_MS_MAX,
  parseStepReply,
  parseStepRequest,
  WAITING_FOR_MAX,
} from "../../src/protocol/messages/reads.ts";

import { counter, positive, validId } from "./arbitraries.ts";
import { codeOf } from "./refusal.ts";
import { testRefusals } from "./refused-fields.ts";

test("a request comes back", () => {
  const request = fc.record({
    generation: positive,
    seq: counter,
    revision: counter,
    step: counter,
    waitMs: fc.nat(PULL_WAIT_MS_MAX),
  });
  fc.assert(
    fc.property(request, (given) => {
      expect(parseStepRequest(decodeMessage(encodeStepRequest(given)).fields)).toEqual(given);
    }),
  );
});

test("a reply comes back", () => {
  const reply = fc.record({
    generation: positive,
    seq: counter,
    revision: counter,
    step: counter,
    waitingFor: fc.array(validId, { maxLength: WAITING_FOR_MAX }),
  });
  fc.assert(
    fc.property(reply, (given) => {
      expect(parseStepReply(decodeMessage(encodeStepReply(given)))).toEqual(given);
    }),
  );
});

test("a reply may be an error instead, which is thrown", () => {
  const message = decodeMessage(encodeError(new PserverError("TIMEOUT", "waits for a")));
  expect(codeOf(() => parseStepReply(message))).toBe("TIMEOUT");
});

test("a reply names a bounded list of ids", () => {
  const header = { generation: 1, seq: 0, revision: 1, step: 0 };
  for (const waitingFor of [undefined, "a", [1], new Array(WAITING_FOR_MAX + 1).fill("a")]) {
    const message = decodeMessage(encodeMessage({ ...header, waitingFor }));
    expect(codeOf(() => parseStepReply(message))).toBe("BAD_MESSAGE");
  }
});

testRefusals({ generation: 1, seq: 0, revision: 0, step: 0, waitMs: 0 }, parseStepRequest, [
  ["generation", 0],
  ["seq", -1],
  ["revision", -1],
  ["revision", undefined],
  ["step", -1],
  ["step", 0.5],
  ["step", undefined],
  ["waitMs", PULL_WAIT_MS_MAX + 1],
  ["waitMs", undefined],
]);
