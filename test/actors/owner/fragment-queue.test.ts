// Proves which requests about fragments are answered at once, which wait until a round has begun or closed, and what one is
// told that waited in vain. The shard is a real one, into which contributions and closes are folded.
import { afterEach, beforeEach, expect, test, vi } from "vitest";
import { FragmentQueue, type WantedRound } from "../../../src/actors/owner/pending-reads.ts";
import { FragmentJob } from "../fold/fragments/fragment-job.ts";

let queue: FragmentQueue;
let job: FragmentJob;
let heard: string[];

beforeEach(() => {
  vi.useFakeTimers();
  queue = new FragmentQueue(5);
  job = new FragmentJob();
  heard = [];
});

afterEach(() => {
  vi.useRealTimers();
});

/** Asks for a version of `f`, or until its round has begun; what it hears is noted under this name. */
function ask(name: string, wanted: Partial<WantedRound>): void {
  queue.at(job.shard, {
    ...{
      from: name,
      wanted: { fragment: "f", version: 1, begun: false, member: undefined, ...wanted },
      waitMs: 100,
    },
    run: () => heard.push(`${name} at ${job.version}`),
    refuse: ({ code, message }) => heard.push(`${name} ${code}: ${message}`),
  });
}

test("one that waits for a round to begin is answered by its first contribution, others by the close", () => {
  ask("closed", {});
  ask("begun", { begun: true });
  queue.advance();
  expect(heard).toEqual([]);
  job.contribute("alice", 1);
  queue.advance();
  expect(heard).toEqual(["begun at 0"]);
  ask("later", { begun: true });
  expect(heard).toEqual(["begun at 0", "later at 0"]);
  job.close(1);
  queue.advance();
  expect(heard.slice(2)).toEqual(["closed at 1"]);
});

test("what has begun and closed before the request came is told at once, and so is a fall back", () => {
  job.contribute("alice", 1);
  job.close(1);
  ask("missed", { begun: true });
  ask("ahead", { version: 7, begun: true });
  expect(heard).toEqual(["missed at 1", "ahead at 1"]);
  ask("next", { version: 2, begun: true });
  expect(heard).toHaveLength(2);
});

test("one that waited in vain is told for what", () => {
  ask("closed", {});
  ask("begun", { begun: true });
  ask("unknown", { fragment: "g", begun: true });
  vi.advanceTimersByTime(100);
  expect(heard).toEqual([
    'unknown UNKNOWN_PARAMETER: shard 5: no parameter here belongs to fragment "g"',
    'closed TIMEOUT: shard 5: fragment "f" has version 0, not 1 yet; waited 100 ms',
    'begun TIMEOUT: shard 5: fragment "f" has version 0, and nobody has contributed to round 1; waited 100 ms',
  ]);
});
