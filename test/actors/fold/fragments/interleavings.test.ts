// Proves for any order of contributions, parts, repeats, restarts, changes of the members and closes by several owners: each
// contribution is in the result whole or not at all, once, as a model says that knows nothing of records; every one is
// accounted for at each record; a shard restored from a snapshot anywhere comes to the same bytes; and memory does not
// grow with the number of trainers.
import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { packValue } from "../../../../src/protocol/codec.ts";
import { both, FragmentJob, MEMBERS } from "./fragment-job.ts";

type Step =
  | {
      readonly kind: "contribute";
      readonly who: number;
      readonly behind: number;
      readonly value: number;
      readonly parts: boolean;
    }
  | { readonly kind: "part"; readonly who: number; readonly value: number }
  | { readonly kind: "repeat" }
  | { readonly kind: "restart"; readonly who: number }
  | { readonly kind: "members"; readonly mask: number }
  | { readonly kind: "close"; readonly round: number; readonly contributions: number }
  | { readonly kind: "restore" };

const WHO = fc.integer({ min: 0, max: 2 });
/** Values whose means and sums are exact in float32, so that the model need not round. */
const VALUE = fc.integer({ min: -8, max: 8 });

const STEPS = fc.array(
  fc.oneof(
    {
      weight: 5,
      arbitrary: fc.record({
        kind: fc.constant("contribute" as const),
        who: WHO,
        behind: fc.integer({ min: 0, max: 2 }),
        value: VALUE,
        parts: fc.boolean(),
      }),
    },
    {
      weight: 2,
      arbitrary: fc.record({ kind: fc.constant("part" as const), who: WHO, value: VALUE }),
    },
    { weight: 1, arbitrary: fc.record({ kind: fc.constant("repeat" as const) }) },
    { weight: 1, arbitrary: fc.record({ kind: fc.constant("restart" as const), who: WHO }) },
    {
      weight: 1,
      arbitrary: fc.record({
        kind: fc.constant("members" as const),
        mask: fc.integer({ min: 1, max: 7 }),
      }),
    },
    {
      weight: 3,
      arbitrary: fc.record({
        kind: fc.constant("close" as const),
        round: fc.integer({ min: -1, max: 1 }),
        contributions: fc.integer({ min: 0, max: 3 }),
      }),
    },
    { weight: 1, arbitrary: fc.record({ kind: fc.constant("restore" as const) }) },
  ),
  { minLength: 1, maxLength: 40 },
);

/** What the rounds of a fragment must come to, without records, parts and sums. */
class Model {
  version = 0;
  value = 0;
  readonly round: { readonly value: number; readonly late: boolean; readonly who: string }[] = [];
  readonly #bases = new Map<string, number>();
  readonly #inRound = new Set<string>();

  /** Whether a complete contribution counts. */
  take(who: string, base: number, value: number): boolean {
    const key = `${who} ${base}`;
    if (base <= (this.#bases.get(who) ?? -1) || this.#inRound.has(key)) return false;
    this.#bases.set(who, base);
    this.#inRound.add(key);
    this.round.push({ value, late: base < this.version, who });
    return true;
  }

  keep(members: readonly string[]): void {
    for (const who of this.#bases.keys()) if (!members.includes(who)) this.#bases.delete(who);
  }

  close(round: number, contributions: number): void {
    if (round !== this.version + 1 || contributions > this.round.length) return;
    const sum = this.round.reduce((all, { value }) => all + value, 0);
    if (this.round.length > 0) this.value -= sum / this.round.length;
    this.version += 1;
    this.round.length = 0;
    this.#inRound.clear();
  }
}

function run(steps: readonly Step[]): void {
  const job = new FragmentJob({ late: "carry", lateDecay: 0 });
  const model = new Model();
  const sessions = new Map(MEMBERS.map((who) => [who, 1]));
  let members: readonly string[] = MEMBERS;
  let id = 0;
  for (const step of steps) {
    const who = "who" in step ? (MEMBERS[step.who] ?? "") : "";
    const sender = { session: sessions.get(who) ?? 1 };
    if (step.kind === "contribute") {
      const base = Math.max(0, model.version - step.behind);
      id += 1;
      const said = { base, id };
      const [u, w] = both(step.value, step.value).map((block) => [block]);
      const outcomes = step.parts
        ? [
            job.send(who, w ?? [], { ...said, part: 1, parts: 2 }, sender),
            job.send(who, u ?? [], { ...said, part: 0, parts: 2 }, sender),
          ]
        : [job.contribute(who, step.value, step.value, said, sender)];
      const counts = members.includes(who) && model.take(who, base, step.value);
      expect((outcomes.at(-1)?.version ?? 0) > 0).toBe(counts);
    } else if (step.kind === "part") {
      id += 1;
      const [u] = both(step.value, step.value);
      if (u !== undefined) job.send(who, [u], { id, part: 0, parts: 2 }, sender);
    } else if (step.kind === "repeat") {
      const last = job.journal.records.at(-1);
      if (last?.subject.endsWith(".contribute")) {
        job.journal.append(last.subject, last.payload);
        job.run();
      }
    } else if (step.kind === "restart") {
      sessions.set(who, (sessions.get(who) ?? 1) + 1);
    } else if (step.kind === "members") {
      members = MEMBERS.filter((_, i) => (step.mask & (1 << i)) !== 0);
      job.members(members);
      job.run();
      model.keep(members);
    } else if (step.kind === "close") {
      const round = model.version + 1 + step.round;
      if (round < 1) continue;
      job.close(step.contributions, round);
      model.close(round, step.contributions);
    } else {
      const restored = job.restored();
      expect(restored.digest()).toBe(job.shard.digest());
      job.on(restored);
    }
    expect(job.version).toBe(model.version);
    for (const value of [...job.values("u"), ...job.values("w")]) {
      expect(Math.abs(value - model.value)).toBeLessThan(1e-3);
    }
    const { processed, merged, late, dropped } = job.shard.fragments.ledger.total;
    expect(processed.contributions).toBe(
      merged.contributions + late.contributions + dropped.contributions + model.round.length,
    );
  }
}

describe("any interleaving", () => {
  test("comes to what the model says", () => {
    fc.assert(fc.property(STEPS, run), { numRuns: 300 });
  });
});

describe("the state of a shard", () => {
  test("holds as many bytes of sums for 200 trainers as for 2", () => {
    const bytes = [2, 200].map((count) => {
      const job = new FragmentJob({ merge: "rda" });
      const trainers = Array.from({ length: count }, (_, i) => `t${i}`);
      job.members(trainers);
      for (const trainer of trainers) job.contribute(trainer, 1);
      return { held: job.shard.valueBytes, state: packValue(job.shard.saveState()).length };
    });
    const [few, many] = bytes;
    expect(many?.held).toBe(few?.held);
    // Ids, outcomes and accounts: some hundred bytes for each trainer, however large the fragment is.
    expect(((many?.state ?? 0) - (few?.state ?? 0)) / 198).toBeLessThan(400);
  });
});
