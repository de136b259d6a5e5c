// Proves each transition of the lifecycle machine, that everything else is refused by giving back
// the same object, and (with random events) that the epoch only rises and ready is final unless its blocks are lost.
import fc from "fast-check";
import { describe, expect, test } from "vitest";
import {
  advance,
  isSelected,
  type Lifecycle,
  type LifecycleEvent,
  UNINITIALIZED,
} from "../../../src/actors/lifecycle/machine.ts";

const at = [{ shard: 0, generation: 1, seq: 7 }];
const begin = (trainer: string, session: number, replace = false): LifecycleEvent => ({
  type: "BEGIN",
  trainer,
  session,
  replace,
});
const finish = (session: number, epoch: number): LifecycleEvent => ({
  type: "FINISH",
  session,
  epoch,
  at,
  sealed: 5,
});
const abort = (session: number, epoch: number, replace = false): LifecycleEvent => ({
  type: "ABORT",
  session,
  epoch,
  replace,
});
const result = (...events: readonly LifecycleEvent[]): Lifecycle =>
  events.reduce(advance, UNINITIALIZED);

describe("BEGIN", () => {
  test("selects under the next epoch", () => {
    const { state, context } = result(begin("a", 1));
    expect(state).toBe("initializing");
    expect(context).toEqual({ epoch: 1, trainer: "a", session: 1, at: [], sealed: 0, revised: 0 });
  });

  test("by a newer session of the same trainer takes over", () => {
    expect(result(begin("a", 1), begin("a", 3)).context).toMatchObject({ epoch: 2, session: 3 });
  });

  test("by another trainer takes over only if the selected one is gone", () => {
    const selected = result(begin("a", 1));
    expect(advance(selected, begin("b", 2))).toBe(selected);
    expect(advance(selected, begin("b", 2, true)).context).toMatchObject({
      epoch: 2,
      trainer: "b",
    });
  });

  test("by the same or an older session changes nothing", () => {
    const selected = result(begin("a", 3));
    expect(advance(selected, begin("a", 3))).toBe(selected);
    expect(advance(selected, begin("a", 2))).toBe(selected);
  });
});

describe("LOSE", () => {
  const ready = result(begin("a", 1), finish(1, 1));

  test("of all takes what was ready back, under the epoch that it had", () => {
    const lost = advance(ready, { type: "LOSE", isSomeLeft: false });
    const context = { epoch: 1, trainer: "a", session: 1, at: [], sealed: 5, revised: 1 };
    expect(lost).toEqual({ state: "uninitialized", context });
    expect(advance(lost, begin("b", 2)).context).toMatchObject({ epoch: 2, trainer: "b" });
  });

  test("of some leaves it ready, and counts how often", () => {
    const once = advance(ready, { type: "LOSE", isSomeLeft: true });
    const twice = advance(once, { type: "LOSE", isSomeLeft: true });
    expect(twice).toMatchObject({ state: "ready", context: { epoch: 1, at: [], revised: 2 } });
  });

  test("changes nothing that is not ready", () => {
    const selected = result(begin("a", 1));
    expect(advance(selected, { type: "LOSE", isSomeLeft: false })).toBe(selected);
    expect(advance(UNINITIALIZED, { type: "LOSE", isSomeLeft: false })).toBe(UNINITIALIZED);
  });
});

describe("FINISH and ABORT", () => {
  test("end the initialization of their session and epoch only", () => {
    const selected = result(begin("a", 1), begin("a", 2));
    for (const event of [finish(1, 2), finish(2, 1), finish(2, 3), abort(1, 2), abort(2, 1)]) {
      expect(advance(selected, event)).toBe(selected);
    }
    expect(advance(selected, finish(2, 2))).toEqual({
      state: "ready",
      context: { epoch: 2, trainer: "a", session: 2, at, sealed: 5, revised: 0 },
    });
    expect(advance(selected, abort(2, 2))).toMatchObject({
      state: "uninitialized",
      context: { epoch: 2 },
    });
  });

  test("an abort in place of a session that is gone still names its epoch", () => {
    const selected = result(begin("a", 1));
    expect(advance(selected, abort(9, 2, true))).toBe(selected);
    expect(advance(selected, abort(9, 1, true)).state).toBe("uninitialized");
  });

  test("nothing ends what has not begun, and after an abort the epoch goes on", () => {
    expect(advance(UNINITIALIZED, finish(1, 0))).toBe(UNINITIALIZED);
    expect(advance(UNINITIALIZED, abort(1, 0))).toBe(UNINITIALIZED);
    expect(result(begin("a", 1), abort(1, 1), begin("b", 2)).context.epoch).toBe(2);
  });
});

test("whatever happens, the epoch never falls and rises by one exactly when someone is selected", () => {
  const session = fc.integer({ min: 1, max: 4 });
  const epoch = fc.integer({ min: 0, max: 4 });
  const event = fc.oneof(
    fc
      .record({ trainer: fc.constantFrom("a", "b"), session, replace: fc.boolean() })
      .map((entry): LifecycleEvent => ({ type: "BEGIN", ...entry })),
    fc.record({ session, epoch }).map((entry) => finish(entry.session, entry.epoch)),
    fc
      .record({ session, epoch, replace: fc.boolean() })
      .map((entry) => abort(entry.session, entry.epoch, entry.replace)),
  );
  fc.assert(
    fc.property(fc.array(event, { maxLength: 12 }), (events) => {
      let current = UNINITIALIZED;
      for (const each of events) {
        const next = advance(current, each);
        const rise = next.context.epoch - current.context.epoch;
        expect(rise).toBe(next !== current && each.type === "BEGIN" ? 1 : 0);
        if (rise === 1 && each.type === "BEGIN") expect(isSelected(next, each.session)).toBe(true);
        if (current.state === "ready") expect(next).toBe(current);
        current = next;
      }
    }),
  );
});
