// Proves how many records may be under way: as many as fit, by the largest recent one, between bounds.
import { expect, test } from "vitest";
import { Credit } from "../../../src/actors/journal/journal-reader.ts";

test("until a record was seen the largest possible one is assumed", () => {
  expect(new Credit(10_000, 1_000).records).toBe(10);
});

test("a larger record counts at once, a smaller one little by little", () => {
  const credit = new Credit(10_000, 1_000);
  credit.noteSize(2_000);
  expect(credit.records).toBe(5);
  credit.noteSize(1);
  expect(credit.records).toBe(5);
  for (let i = 0; i < 20; i++) credit.noteSize(1);
  expect(credit.records).toBeGreaterThan(10);
  credit.noteSize(2_500);
  expect(credit.records).toBe(4);
});

test("two may always be under way, and never more than 512", () => {
  const credit = new Credit(10_000, 100_000);
  expect(credit.records).toBe(2);
  for (let i = 0; i < 1_000; i++) credit.noteSize(0);
  expect(credit.records).toBe(512);
});
