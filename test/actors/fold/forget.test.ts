// Proves what becomes of trainers that hosts tell a shard to forget: their places become free, and nothing of
// them is kept, but only while their sessions are those named in the record; sessions that have ended stay
// ended. A table that is full of invented sessions takes trainers again, whatever their numbers are.
import fc from "fast-check";
import { expect, test } from "vitest";
import type { TrainerSession } from "../../../src/protocol/messages/lifecycle-messages.ts";
import type { Outcome } from "../../../src/protocol/messages/outcomes.ts";
import { Folded, limitedRules } from "./folded.ts";

const MOST = Number.MAX_SAFE_INTEGER;
const ADD = { op: "mix", alpha: 1, beta: 1 } as const;
const TRAINERS = ["a", "b", "c", "d", "e", "f"];
const PLACES = 4;

/** A shard that remembers few trainers, and counts the records that it has applied. */
class Counter extends Folded {
  constructor() {
    super(undefined, { knownRules: limitedRules({ trainersMax: PLACES }) });
    this.journal.init(Float64Array.of(0), { trainer: "a", session: 1 });
    this.run();
  }

  push(trainer: string, session: number, n: number): Outcome {
    this.journal.push(Float64Array.of(1), ADD, { trainer, session, n });
    const [outcome] = this.run();
    if (outcome === undefined) throw new Error("nobody is answered");
    return outcome;
  }

  forget(...trainers: readonly TrainerSession[]): void {
    this.journal.host({ verb: "forget", trainers });
    this.run();
  }

  end(upTo: number, live: readonly number[]): void {
    this.journal.host({ verb: "sessions", upTo, live });
    this.run();
  }

  get sum(): number {
    return new Float64Array(Uint8Array.from(this.block().values()).buffer)[0] ?? Number.NaN;
  }

  get remembered(): TrainerSession[] {
    return this.shard.trainers.after("", 100);
  }
}

test("a table full of invented sessions takes trainers again", () => {
  const counter = new Counter();
  for (const [i, trainer] of ["x", "y", "z"].entries()) counter.push(trainer, MOST - i, 1);
  expect(counter.push("b", 2, 1)).toMatchObject({ code: "TOO_MANY_TRAINERS" });
  // All that a sweep can say of numbers leaves them where they are.
  counter.end(2, [1, 2]);
  expect(counter.push("b", 2, 1)).toMatchObject({ code: "TOO_MANY_TRAINERS" });
  counter.forget(["x", MOST], ["y", MOST - 1]);
  expect(counter.push("b", 2, 1)).toMatchObject({ version: 5 });
  expect(counter.remembered).toEqual([
    ["a", 1],
    ["b", 2],
    ["z", MOST - 2],
  ]);
});

test("a trainer that uses another's live session is forgotten, the other is not", () => {
  const counter = new Counter();
  counter.push("x", 1, 1);
  counter.end(1, [1]);
  expect(counter.remembered).toEqual([
    ["a", 1],
    ["x", 1],
  ]);
  counter.forget(["x", 1]);
  expect(counter.remembered).toEqual([["a", 1]]);
  expect(counter.push("a", 1, 1)).toMatchObject({ version: 1 });
});

test("a trainer whose id was used with a huge session number can use it again", () => {
  const counter = new Counter();
  counter.push("b", MOST, 1);
  expect(counter.push("b", 2, 1)).toMatchObject({ code: "SUPERSEDED" });
  counter.forget(["b", MOST]);
  expect(counter.push("b", 2, 1)).toMatchObject({ version: 3 });
});

test("the trainers are told page by page, in order of their ids", () => {
  const counter = new Counter();
  for (const trainer of ["é", "A", "b"]) counter.push(trainer, 2, 1);
  expect(counter.shard.trainers.after("", 2)).toEqual([
    ["A", 2],
    ["a", 1],
  ]);
  expect(counter.shard.trainers.after("a", 2)).toEqual([
    ["b", 2],
    ["é", 2],
  ]);
  expect(counter.shard.trainers.after("é", 2)).toEqual([]);
});

test("whatever is forgotten and ended, what a trainer has sent counts once while it is remembered", () => {
  const trainer = fc.constantFrom(...TRAINERS);
  const session = fc.constantFrom(1, 2, 3, MOST - 1, MOST);
  const event = fc.oneof(
    { weight: 6, arbitrary: fc.record({ trainer, session, n: fc.integer({ min: 1, max: 3 }) }) },
    { weight: 2, arbitrary: fc.record({ forget: fc.array(fc.tuple(trainer, session)) }) },
    { weight: 1, arbitrary: fc.record({ upTo: fc.constantFrom(1, 2, 3), live: fc.boolean() }) },
  );
  fc.assert(
    fc.property(fc.array(event, { maxLength: 60 }), (events) => {
      const counter = new Counter();
      const remembered = new Map<string, { session: number; numbers: Set<number> }>();
      remembered.set("a", { session: 1, numbers: new Set([1]) });
      const ended = new Set<number>();
      let sum = 0;
      for (const happened of events) {
        if ("forget" in happened) {
          counter.forget(...happened.forget);
          for (const [id, number] of happened.forget) {
            if (remembered.get(id)?.session === number) remembered.delete(id);
          }
        } else if ("upTo" in happened) {
          const { upTo } = happened;
          counter.end(upTo, happened.live ? [upTo] : []);
          for (let i = 1; i <= (happened.live ? upTo - 1 : upTo); i++) ended.add(i);
          for (const [id, known] of remembered) {
            if (ended.has(known.session)) remembered.delete(id);
          }
        } else {
          const { trainer: id, session: number, n } = happened;
          counter.push(id, number, n);
          const known = remembered.get(id);
          if (ended.has(number) || number < (known?.session ?? 0)) continue;
          if (known === undefined && remembered.size >= PLACES) continue;
          const life = known?.session === number ? known : { session: number, numbers: new Set() };
          if (!life.numbers.has(n)) sum += 1;
          remembered.set(id, {
            session: number,
            numbers: new Set([...life.numbers, n] as number[]),
          });
        }
        expect(counter.sum).toBe(sum);
        const expected = [...remembered].map(([id, known]) => [id, known.session]);
        expect(counter.remembered).toEqual(expected.sort());
      }
      expect(counter.restored().digest()).toBe(counter.shard.digest());
    }),
    { numRuns: 200 },
  );
});
