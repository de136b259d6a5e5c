// Proves how long a recovery waits for the next owner of a shard, and what it takes for one.
import { afterEach, beforeEach, expect, test, vi } from "vitest";
import type { OwnersClient } from "../../../src/actors/host/owners-client.ts";
import { awaitOwner } from "../../../src/actors/recovery/recovery.ts";
import { PserverError } from "../../../src/protocol/index.ts";
import { withoutPauses } from "../../support/without-pauses.ts";

const STOPPED = new PserverError("JOURNAL_LOST", "the end is lost");
const NOBODY = new PserverError("NO_OWNER", "no host has answered");

beforeEach(() => {
  vi.useFakeTimers({ toFake: ["performance"] });
});

afterEach(() => {
  vi.useRealTimers();
});

/**
 * Waits for an owner of generation 2 in a job with leases of 1 s. Each question takes 1 s, and is answered with
 * the next generation or error; the last one stays. Returns the code of the problem and the number of questions.
 */
async function wait(
  answers: readonly (number | PserverError)[],
  onAsked: (asked: number) => void = () => undefined,
  signal: AbortSignal = new AbortController().signal,
  hadHost = false,
): Promise<[code: string | undefined, asked: number]> {
  withoutPauses();
  let asked = 0;
  const owners: Pick<OwnersClient, "ask"> = {
    ask: async (shard, verb) => {
      expect([shard, verb]).toEqual([3, "status"]);
      const answer = answers[Math.min(asked++, answers.length - 1)];
      onAsked(asked);
      vi.advanceTimersByTime(1_000);
      if (answer instanceof PserverError) throw answer;
      return { fields: { status: { generation: answer } }, data: new Uint8Array() };
    },
  };
  const expected = { shard: 3, generation: 2, leaseMs: 1_000, hadHost, signal };
  return [(await awaitOwner(owners, expected))?.code, asked];
}

test.each([2, 3])(
  "an owner of generation %d serves a shard of generation 2",
  async (generation) => {
    expect(await wait([generation])).toEqual([undefined, 1]);
  },
);

test("an owner that has stopped, is being replaced, or serves an earlier generation is waited for", async () => {
  expect(await wait([STOPPED, NOBODY, 1, 2])).toEqual([undefined, 4]);
});

test("nothing is waited for where no host answers at first", async () => {
  expect(await wait([NOBODY, 2])).toEqual(["NO_OWNER", 1]);
});

test("a host that answered before is waited for although none answers at first", async () => {
  const { signal } = new AbortController();
  expect(await wait([NOBODY, NOBODY, 2], undefined, signal, true)).toEqual([undefined, 3]);
  expect(await wait([NOBODY], undefined, signal, true)).toEqual(["NO_OWNER", 7]);
});

test("after two lease times and 5 s the last error is the reason", async () => {
  expect(await wait([1, STOPPED])).toEqual(["JOURNAL_LOST", 7]);
  expect(await wait([STOPPED, 1])).toEqual(["NOT_OWNER", 7]);
});

test("an interrupt ends the waiting", async () => {
  const controller = new AbortController();
  const reason = new PserverError("ABORTED", "interrupted by SIGINT");
  const interrupt = (asked: number): void => {
    if (asked === 3) controller.abort(reason);
  };
  await expect(wait([STOPPED], interrupt, controller.signal)).rejects.toBe(reason);
});
