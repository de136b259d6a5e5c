// Proves pull requests and their replies: they come back as they were encoded, and wrong entries are
// refused by name.
import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { decodeMessage, sealMessage } from "../../src/protocol/codec.ts";
import { DTYPES, type Dtype } from "../../src/protocol/dtypes.ts";
import { PserverError } from "../../src/protocol/errors.ts";
import { encodeError } from "../../src/protocol/messages/outcomes.ts";
import { partCounts, readPartIndex } from "../../src/protocol/messages/parts.ts";
import {
  draftPullReply,
  encodePullRequest,
  PULL_WAIT_MS_MAX,
  parsePullReply,
  parsePullRequest,
} from "../../src/protocol/messages/reads.ts";
import { counter, positive } from "./arbitraries.ts";
import { codeOf } from "./refusal.ts";
import { testRefusals } from "./refused-fields.ts";

describe("a pull request", () => {
  test("comes back", () => {
    const request = fc.record(
      {
        epoch: positive,
        generation: positive,
        seq: counter,
        waitMs: fc.nat(PULL_WAIT_MS_MAX),
        step: counter,
        encoding: fc.constantFrom("bfloat16" as const, "float16" as const),
      },
      { requiredKeys: ["epoch", "generation", "seq", "waitMs"] },
    );
    fc.assert(
      fc.property(request, (given) => {
        expect(parsePullRequest(decodeMessage(encodePullRequest(given)).fields)).toEqual(given);
      }),
    );
  });

  test("of a part carries its index", () => {
    const index = { rows: Uint32Array.of(0, 3, 9), inner: Uint32Array.of(1, 2) };
    const request = { epoch: 1, generation: 1, seq: 0, waitMs: 5, part: partCounts(index) };
    const { fields, data } = decodeMessage(encodePullRequest(request, index));
    expect(parsePullRequest(fields)).toEqual(request);
    const read = readPartIndex(request.part, data, { rows: 10, rowElements: 3 });
    expect([...read.rows]).toEqual([0, 3, 9]);
    expect([...(read.inner ?? [])]).toEqual([1, 2]);
    expect(read.elements).toHaveLength(0);
  });

  testRefusals({ epoch: 1, generation: 1, seq: 0, waitMs: 0 }, parsePullRequest, [
    ["epoch", 0],
    ["epoch", undefined],
    ["generation", 0],
    ["generation", "1"],
    ["seq", -1],
    ["seq", 0.5],
    ["waitMs", -1],
    ["waitMs", PULL_WAIT_MS_MAX + 1],
    ["waitMs", Number.NaN],
    ["waitMs", undefined],
  ]);
});

describe("a pull reply", () => {
  test("comes back with its values", () => {
    const reply = fc.record({
      epoch: positive,
      dtype: fc.constantFrom(...(Object.keys(DTYPES) as Dtype[])),
      generation: positive,
      seq: counter,
      version: counter,
      data: fc.uint8Array({ maxLength: 64 }),
    });
    fc.assert(
      fc.property(reply, ({ data, ...header }) => {
        const draft = draftPullReply(header, data.length);
        draft.data.set(data);
        const given = parsePullReply(decodeMessage(sealMessage(draft)));
        expect({ ...given, data: [...given.data] }).toEqual({ ...header, data: [...data] });
      }),
    );
  });

  test("may be an error instead, which is thrown", () => {
    const message = decodeMessage(encodeError(new PserverError("STALE_EPOCH", "old")));
    expect(codeOf(() => parsePullReply(message))).toBe("STALE_EPOCH");
  });

  testRefusals(
    { epoch: 1, dtype: "float32", generation: 1, seq: 0, version: 1 },
    (fields) => parsePullReply({ fields, data: new Uint8Array(4) }),
    [
      ["epoch", undefined],
      ["dtype", "bf16", "BAD_DTYPE"],
      ["generation", undefined],
      ["seq", null],
      ["version", -1],
    ],
  );
});
