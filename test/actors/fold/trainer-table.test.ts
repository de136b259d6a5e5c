// Proves how a shard answers repeats, late and overtaking records, new sessions, full windows and
// full tables, and what `done` and `floor` make it forget. All of it is seen from outside: which
// records change a sum, and what is answered.

import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { RULES_1, type Rules } from "../../../src/actors/fold/rules.ts";
import { Shard } from "../../../src/actors/fold/shard.ts";
import type { Outcome } from "../../../src/protocol/messages/outcomes.ts";
import { Folded } from "./folded.ts";
import { JournalWriter, type Sender, SHARD, SUBJECTS } from "./journal-writer.ts";

const WINDOW = 4;
const RULES: Rules = {
  ...RULES_1,
  windowRecords: WINDOW,
  trainersMax: 3,
  shardBytesMax: 1024,
  blocksMax: 8,
};
const ADD = { op: "mix", alpha: 1, beta: 1 } as const;

/** A shard with one counter; every applied push adds its own amount. */
class Counter {
  readonly journal: JournalWriter = new JournalWriter();
  readonly shard: Shard = Shard.create({
    subjects: SUBJECTS,
    shard: SHARD,
    knownRules: new Map([[1, RULES]]),
  });

  constructor() {
    this.journal.host({ verb: "rules", rules: 1 });
    this.journal.init(Float64Array.of(0), { trainer: "initializer" });
    this.#run();
  }

  push(amount: number, sender: Sender & { n: number }): Outcome {
    this.journal.push(Float64Array.of(amount), ADD, sender);
    return this.#run();
  }

  floor(session: number): void {
    this.journal.host({ verb: "floor", session });
    for (const record of this.journal.records.slice(this.shard.seq)) this.shard.apply(record);
  }

  get sum(): number {
    const values = this.shard.block("w", 0)?.values() ?? new Uint8Array(8);
    return new Float64Array(Uint8Array.from(values).buffer)[0] ?? Number.NaN;
  }

  ask(session: number, ...numbers: number[]): Outcome[] {
    return this.shard.outcomes("alice", { session, numbers });
  }

  #run(): Outcome {
    let outcome: Outcome | undefined;
    for (const record of this.journal.records.slice(this.shard.seq)) {
      outcome = this.shard.apply(record)?.outcome;
    }
    if (outcome === undefined) throw new Error("nobody is answered");
    return outcome;
  }
}

describe("repeats", () => {
  test("an applied record is answered with its first outcome and not applied again", () => {
    const counter = new Counter();
    const first = counter.push(1, { n: 1 });
    expect(first).toEqual({ n: 1, seq: 4, version: 2 });
    counter.push(10, { n: 2 });
    expect(counter.push(1, { n: 1 })).toEqual(first);
    expect(counter.sum).toBe(11);
  });

  test("a rejected record stays rejected, also when it would fit by now", () => {
    const counter = new Counter();
    const first = counter.push(1, { n: 1, parameter: "v" });
    expect(first).toMatchObject({ code: "NOT_INITIALIZED", seq: 4 });
    counter.journal.init(Float64Array.of(0), { n: 2, parameter: "v" });
    expect(counter.push(1, { n: 1, parameter: "v" })).toEqual(first);
  });

  test("numbers may arrive in any order", () => {
    const counter = new Counter();
    for (const n of [3, 1, 4, 2, 3, 1]) counter.push(10 ** n, { n });
    expect(counter.sum).toBe(11_110);
  });

  test("an overtaken repeat is SETTLED once `done` has passed it", () => {
    const counter = new Counter();
    counter.push(1, { n: 1 });
    counter.push(10, { n: 2, done: 1 });
    expect(counter.push(1, { n: 1 })).toMatchObject({
      n: 1,
      seq: 6,
      code: "SETTLED",
      message: expect.stringMatching(/number above 1; received 1/),
    });
    expect(counter.sum).toBe(11);
    expect(counter.shard.saveState().trainers[0]).toEqual(["alice", 1, 1, [[2, 5, 3]]]);
  });

  test("a number that `done` skipped is never applied", () => {
    const counter = new Counter();
    counter.push(1, { n: 3, done: 2 });
    expect(counter.push(10, { n: 2 })).toMatchObject({ code: "SETTLED" });
    expect(counter.sum).toBe(1);
  });

  test("`done` may jump far", () => {
    const counter = new Counter();
    counter.push(1, { n: 1 });
    const far = Number.MAX_SAFE_INTEGER;
    expect(counter.push(10, { n: far, done: far - 1 })).toMatchObject({ version: 3 });
    expect(counter.shard.saveState().trainers[0]).toEqual(["alice", 1, far - 1, [[far, 5, 3]]]);
  });
});

describe("window", () => {
  test("a number beyond it is rejected until `done` follows", () => {
    const counter = new Counter();
    expect(counter.push(1, { n: WINDOW })).toMatchObject({ version: 2 });
    expect(counter.push(10, { n: WINDOW + 1 })).toMatchObject({
      code: "WINDOW",
      message: expect.stringMatching(/at most 4; received 5/),
    });
    expect(counter.sum).toBe(1);
    expect(counter.push(10, { n: WINDOW + 1, done: 1 })).toMatchObject({ version: 3 });
    expect(counter.sum).toBe(11);
  });

  test("a record that overtook all before it is in the window of its own `done`", () => {
    const counter = new Counter();
    expect(counter.push(1, { n: 100, done: 100 - WINDOW })).toMatchObject({ version: 2 });
  });

  test("rejected by the window, a new session does not end the old one", () => {
    const counter = new Counter();
    counter.push(1, { n: 1, session: 1 });
    expect(counter.push(10, { n: WINDOW + 1, session: 2 })).toMatchObject({ code: "WINDOW" });
    expect(counter.push(100, { n: 2, session: 1 })).toMatchObject({ version: 3 });
  });
});

describe("sessions", () => {
  test("a higher session begins anew and ends the lower one", () => {
    const counter = new Counter();
    counter.push(1, { n: 1, session: 1 });
    expect(counter.push(10, { n: 1, session: 2 })).toMatchObject({ version: 3 });
    expect(counter.push(100, { n: 2, session: 1 })).toMatchObject({
      code: "SUPERSEDED",
      message: expect.stringMatching(/expected 2; received 1/),
    });
    expect(counter.push(1, { n: 1, session: 1 })).toMatchObject({ code: "SUPERSEDED" });
    expect(counter.sum).toBe(11);
  });

  test("a session at or below the floor must rejoin, for ever and whatever restarts", () => {
    const counter = new Counter();
    counter.push(1, { n: 1, session: 2 });
    counter.push(10, { n: 1, session: 3, trainer: "bob" });
    counter.floor(2);
    counter.floor(1);
    const rejoin = { code: "REJOIN", message: expect.stringMatching(/above 2; received 2/) };
    expect(counter.push(100, { n: 2, session: 2 })).toMatchObject(rejoin);
    expect(counter.ask(2, 1)).toMatchObject([rejoin]);
    expect(counter.push(10, { n: 1, session: 3, trainer: "bob" })).toMatchObject({ version: 3 });
    expect(counter.push(1000, { n: 1, session: 3 })).toMatchObject({ version: 4 });
    expect(counter.sum).toBe(1011);
    expect(counter.shard.saveState()).toMatchObject({ floor: 2 });
  });

  test("the table takes so many trainers; a floor makes room", () => {
    const counter = new Counter();
    counter.push(1, { n: 1, session: 4 });
    counter.push(10, { n: 1, session: 5, trainer: "bob" });
    expect(counter.push(100, { n: 1, session: 6, trainer: "carol" })).toMatchObject({
      code: "TOO_MANY_TRAINERS",
      message: expect.stringMatching(/remembers 3 trainers/),
    });
    expect(counter.shard.outcomes("carol", { session: 6, numbers: [1] })).toMatchObject([
      { code: "TOO_MANY_TRAINERS" },
    ]);
    counter.floor(1);
    expect(counter.push(100, { n: 1, session: 6, trainer: "carol" })).toMatchObject({ version: 4 });
  });
});

test("an outcome request is answered as the records were", () => {
  const counter = new Counter();
  counter.push(1, { n: 1, session: 2 });
  const applied = counter.push(10, { n: 2, done: 1, session: 2 });
  const rejected = counter.push(100, { n: 3, epoch: 9, session: 2 });
  const answers = counter.ask(2, 3, 2, 1, 4);
  expect(answers.slice(0, 2)).toEqual([rejected, applied]);
  expect(answers.slice(2)).toMatchObject([
    { n: 1, seq: 6, code: "SETTLED" },
    { n: 4, seq: 6, code: "BAD_CHECKSUM", message: expect.stringContaining("record 4") },
  ]);
  expect(counter.ask(1, 1)).toMatchObject([{ code: "SUPERSEDED" }]);
  expect(counter.ask(3, 1)).toMatchObject([{ code: "BAD_CHECKSUM" }]);
});

test("whatever is sent in whatever order, nothing is applied twice and memory stays bounded", () => {
  const arrival = fc.record({
    trainer: fc.constantFrom("alice", "bob"),
    session: fc.integer({ min: 1, max: 3 }),
    n: fc.integer({ min: 1, max: 12 }),
    back: fc.integer({ min: 1, max: 12 }),
  });
  fc.assert(
    fc.property(fc.array(arrival, { maxLength: 60 }), (arrivals) => {
      const counter = new Counter();
      const applied = new Set<string>();
      for (const { trainer, session, n, back } of arrivals) {
        const before = counter.sum;
        counter.push(1, { trainer, session, n, done: Math.max(0, n - back) });
        const identity = `${trainer} ${session} ${n}`;
        if (counter.sum !== before) {
          expect(applied).not.toContain(identity);
          applied.add(identity);
        }
      }
      expect(counter.sum).toBe(applied.size);
      for (const [, , done, outcomes] of counter.shard.saveState().trainers) {
        expect(outcomes.length).toBeLessThanOrEqual(WINDOW);
        for (const [n] of outcomes) expect(n).toBeGreaterThan(done);
      }
    }),
    { numRuns: 200 },
  );
});

test("a session that a host has ended by itself is over with those before it, and a later one is not", () => {
  const folded = new Folded();
  folded.journal.init(Float32Array.of(1), { config: { optimizer: "none" } });
  folded.apply();
  const note = (session: number, trainer = "alice"): void => {
    folded.journal.note({ loss: 1 }, { trainer, session });
  };
  const end = (trainer: string, session: number): void => {
    folded.journal.host({ verb: "end", trainer, session });
  };
  note(4);
  end("alice", 4);
  // A lower one changes nothing.
  end("alice", 2);
  for (const session of [3, 4]) note(session);
  note(4, "bob");
  note(5);
  const codes = (): (string | undefined)[] => folded.run().map(({ code }) => code);
  expect(codes()).toEqual([undefined, "REJOIN", "REJOIN", undefined, undefined]);
  expect(folded.restored().saveState()).toEqual(folded.shard.saveState());
  // Once all sessions up to it have ended anyway, it need not be remembered.
  expect(folded.shard.saveState().ended).toEqual([["alice", 4]]);
  folded.journal.host({ verb: "floor", session: 4 });
  note(4);
  expect(codes()).toEqual(["REJOIN"]);
  expect(folded.shard.saveState()).not.toHaveProperty("ended");
});
