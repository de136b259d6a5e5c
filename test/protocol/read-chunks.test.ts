// Proves chunks of replies to batched reads: they come back with their values, may be an error instead,
// and are refused with a wrong entry.
import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { decodeMessage, sealMessage } from "../../src/protocol/codec.ts";
import { PserverError } from "../../src/protocol/errors.ts";
import { BATCH_ENTRIES_MAX } from "../../src/protocol/limits.ts";
import { encodeError } from "../../src/protocol/messages/outcomes.ts";
import { draftReadChunk, parseReadChunk } from "../../src/protocol/messages/reads.ts";
import { counter, positive } from "./arbitraries.ts";
import { codeOf } from "./refusal.ts";
import { testRefusals } from "./refused-fields.ts";

describe("a chunk of a reply", () => {
  test("comes back with its values", () => {
    const chunk = fc.record({
      from: fc.nat(BATCH_ENTRIES_MAX - 1),
      more: fc.boolean(),
      generation: positive,
      seq: counter,
      versions: fc.array(counter, { minLength: 1, maxLength: 40 }),
      data: fc.uint8Array({ maxLength: 64 }),
    });
    fc.assert(
      fc.property(chunk, ({ data, ...header }) => {
        const draft = draftReadChunk(header, data.length);
        draft.data.set(data);
        const given = parseReadChunk(decodeMessage(sealMessage(draft)));
        expect({ ...given, data: [...given.data] }).toEqual({ ...header, data: [...data] });
      }),
    );
  });

  test("may be an error instead, which is thrown", () => {
    const message = decodeMessage(encodeError(new PserverError("STALE_EPOCH", "old")));
    expect(codeOf(() => parseReadChunk(message))).toBe("STALE_EPOCH");
  });

  testRefusals(
    { from: 0, more: false, generation: 1, seq: 0, versions: [1] },
    (fields) => parseReadChunk({ fields, data: new Uint8Array(8) }),
    [
      ["from", undefined],
      ["from", -1],
      ["from", BATCH_ENTRIES_MAX],
      ["more", 1],
      ["generation", 0],
      ["seq", null],
      ["versions", undefined],
      ["versions", []],
      ["versions", [1, -1]],
      ["versions", [0.5]],
      ["versions", Array.from({ length: BATCH_ENTRIES_MAX + 1 }, () => 1)],
    ],
  );
});
