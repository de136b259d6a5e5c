// Proves which losses a client that has seen a position is told, and that the remembered fallbacks are
// bounded.
import { expect, test } from "vitest";
import {
  FALLBACKS_MAX,
  type Fallback,
  lostSince,
  parseFallbacks,
  withFallbacks,
} from "../../src/protocol/index.ts";

const FIRST: Fallback = { generation: 1, from: 41, to: 57 };
const SECOND: Fallback = { generation: 2, from: 9, to: 8 };
const THIRD: Fallback = { generation: 3, from: 5, to: 6 };

test("lists everything lost since the generation that was seen, and nothing where nothing was lost", () => {
  const all = [FIRST, SECOND, THIRD];
  expect(lostSince(all, { generation: 1, seq: 30 })).toEqual([FIRST, THIRD]);
  expect(lostSince(all, { generation: 2, seq: 8 })).toEqual([THIRD]);
  expect(lostSince(all, { generation: 4, seq: 1 })).toEqual([]);
});

test("a position that lies further shows that more existed than anybody else knew", () => {
  const all = [FIRST, SECOND];
  expect(lostSince(all, { generation: 1, seq: 60 })).toEqual([{ ...FIRST, to: 60 }]);
  expect(lostSince(all, { generation: 2, seq: 12 })).toEqual([{ ...SECOND, to: 12 }]);
});

test("of several of one generation only the last one ends with the journal", () => {
  const aside = [5, 9].map((seq) => ({ generation: 1, from: seq, to: seq }));
  const all = [...aside, { generation: 1, from: 23, to: 22 }, THIRD];
  expect(lostSince(all, { generation: 1, seq: 7 })).toEqual([...aside, THIRD]);
  const further = { generation: 1, from: 23, to: 30 };
  expect(lostSince(all, { generation: 1, seq: 30 })).toEqual([...aside, further, THIRD]);
});

test("the newest replacements are remembered, as many as a message may list", () => {
  let known: readonly Fallback[] = [];
  for (let generation = 1; generation <= FALLBACKS_MAX + 2; generation++) {
    known = withFallbacks(known, [{ generation, from: 1, to: 0 }]);
  }
  expect(known).toHaveLength(FALLBACKS_MAX);
  expect(known.at(-1)?.generation).toBe(FALLBACKS_MAX + 2);
  expect(parseFallbacks({ fallbacks: known })).toEqual(known);
  expect(() => parseFallbacks({ fallbacks: [...known, FIRST] })).toThrow("a list of at most");
});

test("a message without replacements names none; a malformed one is refused", () => {
  expect(parseFallbacks({})).toEqual([]);
  expect(() => parseFallbacks({ fallbacks: [{ generation: 0, from: 1, to: 1 }] })).toThrow(
    "generation: expected a whole number from 1",
  );
});
