// Proves that what follows closely on earlier work is gathered, and what comes alone does not wait.
import { afterEach, beforeEach, expect, test, vi } from "vitest";
import { Coalescer } from "../../../src/actors/owner/fold-loop.ts";

let done: string[];
let coalescer: Coalescer;

beforeEach(() => {
  vi.useFakeTimers();
  done = [];
  coalescer = new Coalescer();
});

afterEach(() => {
  vi.useRealTimers();
});

function add(name: string): void {
  coalescer.soon(() => done.push(name));
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
  coalescer.soon(() => add("inner"));
  add("a");
  vi.advanceTimersByTime(0);
  expect(done).toEqual(["a"]);
  vi.advanceTimersByTime(1);
  expect(done).toEqual(["a", "inner"]);
});
