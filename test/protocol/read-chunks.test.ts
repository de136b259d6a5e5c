// Proves chunks of replies to batched reads: they come back with their values, may be an error instead,
// and are refused with a wrong entry.
import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { decodeMessage, sealMessage } from "../../src/protocol/codec.ts";
import { PserverError } from "../../src/protocol/errors.ts";
import { BATCH_ENTRIES_MAX } from "../../src/protocol/limits.ts";
import { draftReadChunk, parseReadChunk } from "../../src/protocol/messages/batch-reads.ts";
import { encodeError } from "../../src/protocol/messages/outcomes.ts";

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
      versions: fc
        .array(counter, { minLength: 1, maxLength: 40 })
        .map((versions) => Float64Array.from(versions)),
      data: fc.array(fc.nat(255), { minLength: 16, maxLength: 16 }),
    });
    fc.assert(
      fc.property(chunk, fc.nat(7), ({ data, ...header }, offset) => {
        const { draft, values } = draftReadChunk(header, data.length);
        values.set(data);
        // In a Buffer at any address, as messages are received.
        const bytes = Buffer.concat([new Uint8Array(offset), sealMessage(draft)]).subarray(offset);
        const given = parseReadChunk(decodeMessage(bytes));
        expect({ ...given, values: [...given.values] }).toEqual({ ...header, values: data });
      }),
    );
  });

  test("may be an error instead, which is thrown", () => {
    const message = decodeMessage(encodeError(new PserverError("STALE_EPOCH", "old")));
    expect(codeOf(() => parseReadChunk(message))).toBe("STALE_EPOCH");
  });

  testRefusals(
    { from: 0, more: false, generation: 1, seq: 0, entries: 1 },
    (fields) => parseReadChunk({ fields, data: new Uint8Array(8) }),
    [
      ["from", undefined],
      ["from", -1],
      ["from", BATCH_ENTRIES_MAX],
      ["more", 1],
      ["generation", 0],
      ["seq", null],
      ["entries", undefined],
      ["entries", 0],
      ["entries", BATCH_ENTRIES_MAX + 1],
    ],
  );

  test.each([
    ["of more entries than it has bytes for", 2, [1], "BAD_LENGTH"],
    ["with a version below 0", 1, [-1], "BAD_VALUE"],
    ["with a version that is no whole number", 1, [0.5], "BAD_VALUE"],
    ["with a version that is no number", 1, [Number.NaN], "BAD_VALUE"],
  ])("%s is refused", (_what, entries, versions, code) => {
    const data = new Uint8Array(Float64Array.from(versions).buffer);
    const fields = { from: 0, more: false, generation: 1, seq: 0, entries };
    expect(codeOf(() => parseReadChunk({ fields, data }))).toBe(code);
  });
});
