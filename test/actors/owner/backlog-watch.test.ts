// Proves that a session that sends far ahead of the fold is found, once, whatever the clocks of host and broker say; and
// that one that waits for its outcomes is not, nor one whose host has paused.
import { expect, test } from "vitest";
import { BACKLOG_BYTES_MAX, BacklogWatch } from "../../../src/actors/owner/backlog-watch.ts";

const MIB = 1024 * 1024;
const RECORD = { trainer: "a", session: 1, payloadBytes: MIB };
/** What the clock of the broker is behind that of the host. */
const SKEW_MS = -5_000;

/** Folds these records, each of 1 MiB, given by when they were stored and folded; returns which were too far ahead. */
function found(records: readonly (readonly [storedMs: number, foldedMs: number])[]): number[] {
  const watch = new BacklogWatch();
  // One that was folded at once shows the difference of the clocks.
  watch.isTooFarAhead({ ...RECORD, trainer: "b", storedMs: SKEW_MS, foldedMs: 0 });
  return records.flatMap(([storedMs, foldedMs], i) => {
    const times = { storedMs: storedMs + SKEW_MS, foldedMs };
    return watch.isTooFarAhead({ ...RECORD, ...times }) ? [i] : [];
  });
}

const LIMIT = BACKLOG_BYTES_MAX / MIB;

test("a session that stores its records faster than they are folded is found once", () => {
  const flood = Array.from({ length: 3 * LIMIT }, (_, i) => [i, 100 * i + 100] as const);
  const [first = 0, ...others] = found(flood);
  expect(others).toEqual([]);
  expect(first).toBeGreaterThanOrEqual(LIMIT - 1);
  expect(first).toBeLessThanOrEqual(LIMIT + 1);
});

test("a session that waits for outcomes is not found, however slow the fold is", () => {
  // Eight records wait at any time.
  const patient = Array.from({ length: 500 }, (_, i) => {
    const foldedMs = 1_000 * (i + 1);
    return [Math.max(0, foldedMs - 8_000), foldedMs] as const;
  });
  expect(found(patient)).toEqual([]);
});

test("records of other sessions and trainers do not count", () => {
  const watch = new BacklogWatch();
  for (let i = 0; i < 4 * LIMIT; i++) {
    const record = { ...RECORD, session: 1 + Math.floor(i / 20), trainer: "a" };
    const isFound = watch.isTooFarAhead({ ...record, storedMs: 0, foldedMs: 100 * i });
    expect(isFound).toBe(false);
  }
});
