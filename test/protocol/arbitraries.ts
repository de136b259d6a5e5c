import fc from "fast-check";
import type { RecordHeader } from "../../src/protocol/messages/records.ts";

/** Any JavaScript string: all of Unicode, halves of surrogate pairs, the empty one. */
export const anyText: fc.Arbitrary<string> = fc.oneof(
  fc.string({ unit: "binary" }),
  fc.string({ unit: "grapheme" }),
  fc.string({ unit: fc.integer({ min: 0, max: 0xffff }).map((unit) => String.fromCharCode(unit)) }),
  fc.string({ unit: fc.constantFrom("a", "=", ".", "*", ">", " ", "4", "1", "\ufeff", "é") }),
);

/** A name that every parameter may have. */
export const validName: fc.Arbitrary<string> = fc.oneof(
  fc.string({ unit: "grapheme", minLength: 1, maxLength: 12 }).filter((name) => {
    return new TextEncoder().encode(name).length <= 66;
  }),
  fc.string({
    unit: fc.constantFrom("w", "_", "-", ".", "0", "/", " "),
    minLength: 1,
    maxLength: 66,
  }),
);

/** An id that every trainer may have. */
export const validId: fc.Arbitrary<string> = fc
  .string({ unit: "grapheme", minLength: 1, maxLength: 4 })
  .filter((id) => new TextEncoder().encode(id).length <= 21);

/** Counters of messages: small, at the borders of encodings, and up to 2^53 − 1. */
export const counter: fc.Arbitrary<number> = fc.oneof(
  fc.nat(300),
  fc.constantFrom(0x7f, 0x80, 0xff, 0x100, 0xffff, 0x10000, 0xffffffff, 2 ** 32, 2 ** 53 - 1),
  fc.maxSafeNat(),
);

/** The same, from 1 on. */
export const positive: fc.Arbitrary<number> = counter.map((value) => Math.max(1, value));

/** What every record of a trainer begins with. */
export const recordHeader: fc.Arbitrary<RecordHeader> = fc
  .record({
    session: positive,
    n: positive,
    done: counter,
    reply: fc.constantFrom("", "_INBOX_j.t.x.applied"),
  })
  .map((header) => ({ ...header, done: Math.min(header.done, header.n - 1) }));

/** Finite float64 numbers; −0 is 0, as in messages. */
export const finiteNumber: fc.Arbitrary<number> = fc
  .double({ noNaN: true, noDefaultInfinity: true })
  .map((value) => (value === 0 ? 0 : value));
