// Proves when a record with a wrong checksum is taken for what the journal holds: if it comes twice with the
// same bytes, on the same subject; and that a record which never comes twice alike is distinguished from one
// that was damaged on its way.
import { expect, test } from "vitest";
import { MismatchedRecords } from "../../../src/actors/journal/mismatched-records.ts";
import { encodeMessage } from "../../../src/protocol/codec.ts";
import { rawMessage } from "../../protocol/raw-message.ts";

const record = (seq: number, ...bytes: number[]) => {
  return { seq, subject: "s", payload: Uint8Array.from(bytes) };
};

test("the same bytes twice settle a record, different ones do not", () => {
  const mismatched = new MismatchedRecords();
  expect(mismatched.isConfirmedBy(record(1, 5))).toBe(false);
  mismatched.remember([record(1, 5), record(2, 6)]);
  expect(mismatched.isConfirmedBy(record(1, 5))).toBe(true);
  expect(mismatched.isConfirmedBy(record(2, 6))).toBe(true);
  expect(mismatched.isConfirmedBy(record(2, 5))).toBe(false);
  expect(mismatched.isConfirmedBy(record(3, 5))).toBe(false);
  expect(mismatched.isConfirmedBy({ ...record(1, 5), subject: "other" })).toBe(false);
});

test("only a record whose checksum does not match is remembered, and the one before is forgotten", () => {
  const mismatched = new MismatchedRecords();
  const good = { seq: 2, subject: "s", payload: encodeMessage({ a: 1 }) };
  const malformed = { seq: 3, subject: "s", payload: rawMessage(1, "c1") };
  mismatched.remember([record(1, 5), good, malformed]);
  expect(mismatched.isConfirmedBy(good)).toBe(false);
  expect(mismatched.isConfirmedBy(malformed)).toBe(false);
  mismatched.remember([record(3, 7)]);
  expect(mismatched.isConfirmedBy(record(1, 5))).toBe(false);
});

test("a record that is never the same is given up", () => {
  const mismatched = new MismatchedRecords();
  for (let i = 0; i < 8; i++) expect(mismatched.remember([record(1, i)])).toBe(true);
  expect(mismatched.remember([record(1, 7)])).toBe(true);
  expect(mismatched.remember([record(1, 9)])).toBe(false);
});

test("in a replicated journal the same bytes have to come from another broker", () => {
  const mismatched = new MismatchedRecords();
  const from = (broker: string) => ({ ...record(1, 5), broker });
  mismatched.remember([from("a")]);
  expect(mismatched.isConfirmedBy(from("a"))).toBe(false);
  expect(mismatched.isConfirmedBy(from("b"))).toBe(true);
  expect(mismatched.isConfirmedBy({ ...record(1, 6), broker: "b" })).toBe(false);
  expect(mismatched.brokerOf(1)).toBe("a");
  // A copy that alone can be read proves nothing, however often it is read.
  for (let i = 1; i < 8; i++) expect(mismatched.remember([from("a")])).toBe(true);
  expect(mismatched.remember([from("a")])).toBe(false);
});
