// Proves that what follows closely on earlier work is gathered, and what comes alone does not wait.
import { afterEach, beforeEach, expect, test, vi } from "vitest";
import { Pace } from "../../../src/actors/owner/fold-loop.ts";

let done: string[];
let pace: Pace;

beforeEach(() => {
  vi.useFakeTimers();
  done = [];
  pace = new Pace();
});

afterEach(() => {
  vi.useRealTimers();
});

function add(name: string): void {
  pace.soon(() => done.push(name));
}

test("work that comes alone is done in the same turn, with all work until then, in order", () => {
  add("a");
  add("b");
  expect(done).toEqual([]);
  vi.advanceTimersByTime(0);
  expect(done).toEqual(["a", "b"]);
  vi.advanceTimersByTime(1);
  add("c");
  vi.advanceTimersByTime(0);
  expect(done).toEqual(["a", "b", "c"]);
});

test("work that follows at once waits a millisecond for more", () => {
  add("a");
  vi.advanceTimersByTime(0);
  add("b");
  vi.advanceTimersByTime(0);
  add("c");
  expect(done).toEqual(["a"]);
  vi.advanceTimersByTime(1);
  expect(done).toEqual(["a", "b", "c"]);
});

test("work given by work is done later", () => {
  pace.soon(() => add("inner"));
  add("a");
  vi.advanceTimersByTime(0);
  expect(done).toEqual(["a"]);
  vi.advanceTimersByTime(1);
  expect(done).toEqual(["a", "inner"]);
});
