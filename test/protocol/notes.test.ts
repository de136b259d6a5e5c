// Proves what a note may hold: that all of it comes through the codec, and that what is beyond its limits is
// refused with what was expected, by the client and, of other clients, by the fold.
import fc from "fast-check";
import { expect, test } from "vitest";
import { decodeMessage, encodeMessage } from "../../src/protocol/codec.ts";
import {
  checkNote,
  encodeNote,
  NOTE_BYTES_MAX,
  NOTE_RECORD_BYTES_MAX,
  type NoteEntries,
  parseNote,
} from "../../src/protocol/messages/records.ts";

const HEAD = { session: 3, n: 7, done: 2, reply: `_INBOX_j.${"t".repeat(64)}` };

const name = fc
  .string({ unit: "grapheme", minLength: 1, maxLength: 12 })
  .filter((text) => text !== "__proto__" && text.isWellFormed());
const value = fc.oneof(
  fc.double({ noNaN: true, noDefaultInfinity: true }).map((x) => (Object.is(x, -0) ? 0 : x)),
  fc.integer(),
  fc.boolean(),
  fc.string({ unit: "grapheme", maxLength: 40 }).filter((text) => text.isWellFormed()),
);
const note = fc.dictionary(name, value, { minKeys: 1, maxKeys: 30, noNullPrototype: true });

test("every note comes through", () => {
  fc.assert(
    fc.property(note, (entries) => {
      const checked = checkNote(entries);
      const bytes = encodeNote({ verb: "note", ...HEAD, note: checked });
      expect(bytes.length).toBeLessThanOrEqual(NOTE_RECORD_BYTES_MAX);
      expect(parseNote(decodeMessage(bytes).fields)).toEqual({
        verb: "note",
        ...HEAD,
        note: entries,
      });
    }),
  );
});

test("the largest note and the longest reply fit into a record", () => {
  const entries = { a: "x".repeat(NOTE_BYTES_MAX - 6) };
  const most = { ...HEAD, session: 2 ** 53 - 1, n: 2 ** 53 - 1, reply: "r".repeat(512) };
  const bytes = encodeNote({ verb: "note", ...most, note: checkNote(entries) });
  expect(bytes.length).toBeLessThanOrEqual(NOTE_RECORD_BYTES_MAX);
  expect(() => checkNote({ a: `${entries.a}x` })).toThrow(
    /at most 4096 bytes as msgpack; received 4097/,
  );
});

const REFUSED: readonly [string, object, string, RegExp][] = [
  ["nothing", {}, "BAD_VALUE", /at least one entry/],
  ["a list", { loss: [1] }, "BAD_VALUE", /received a list/],
  ["a map", { loss: { x: 1 } }, "BAD_VALUE", /received a map/],
  ["bytes", { loss: new Uint8Array(1) }, "BAD_VALUE", /received bytes/],
  ["null", { loss: null }, "BAD_VALUE", /received null/],
  ["an empty name", { "": 1 }, "BAD_VALUE", /names of 1 to 128 bytes/],
  ["a long name", { ["ü".repeat(65)]: 1 }, "BAD_VALUE", /names of 1 to 128 bytes/],
  [
    "65 entries",
    Object.fromEntries(Array.from({ length: 65 }, (_, i) => [i, i])),
    "TOO_LARGE",
    /64/,
  ],
];

test.each(REFUSED)("%s is refused", (_what, entries, code, message) => {
  const refused = expect.objectContaining({ code, message: expect.stringMatching(message) });
  expect(() => checkNote(entries as NoteEntries)).toThrow(refused);
  const sent = decodeMessage(encodeMessage({ ...HEAD, note: entries }));
  expect(() => parseNote(sent.fields)).toThrow(refused);
});

test("a number that is not finite is kept as a word, and refused as a number of a record", () => {
  const entries = { loss: Number.NaN, norm: Number.POSITIVE_INFINITY, least: -Infinity, step: 3 };
  expect(checkNote(entries)).toEqual({
    ...{ loss: "NaN", norm: "Infinity", least: "-Infinity", step: 3 },
  });
  for (const [name, word] of Object.entries(checkNote(entries)).slice(0, 3)) {
    const { fields } = decodeMessage(encodeMessage({ ...HEAD, note: { [name]: Number(word) } }));
    const message = expect.stringContaining(`"${name}": expected a finite number`);
    expect(() => parseNote(fields)).toThrow(
      expect.objectContaining({ code: "BAD_VALUE", message }),
    );
  }
});

test("a whole number that no float holds is refused, and kept as text", () => {
  const step = 2n ** 53n + 1n;
  const given = { step } as unknown as NoteEntries;
  expect(() => checkNote(given)).toThrow(/"step": .*received a bigint/);
  expect(checkNote({ step: String(step) })).toEqual({ step: "9007199254740993" });
});

test("a note that is not a map is refused", () => {
  for (const entries of [7, [1], "loss"]) {
    const { fields } = decodeMessage(encodeMessage({ ...HEAD, note: entries }));
    expect(() => parseNote(fields)).toThrow(expect.objectContaining({ code: "BAD_MESSAGE" }));
  }
});
