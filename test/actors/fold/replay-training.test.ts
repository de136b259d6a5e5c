// Proves that training is a function of the journal: random journals of gradients, mixes, parts and
// encodings for parameters of any optimizer, in every mode, with members, clocks and steps that close,
// give the same answers and the same digest from a state saved at any record. Most of their records
// are applied; the others are rejected alike.
import fc from "fast-check";
import { expect, test } from "vitest";
import type { RecordAnswer, Shard } from "../../../src/actors/fold/shard.ts";
import {
  OPTIMIZERS,
  type SynchronizationInput,
  toSynchronization,
} from "../../../src/protocol/config/index.ts";
import { encodeClock, type PushOperation } from "../../../src/protocol/messages/records.ts";
import { ascending } from "./arbitrary-parts.ts";
import { Folded } from "./folded.ts";
import { type JournalWriter, SHARD, SUBJECTS } from "./journal-writer.ts";
import { fullConfig } from "./optimizer-configs.ts";

const ROWS = 3;
const WIDTH = 2;
const TRAINERS = ["alice", "bob", "carol"];

/** Writes a record; in a job in steps, gradients name theirs. */
type Write = (journal: JournalWriter, inSteps: boolean) => unknown;

const trainer = fc.constantFrom(...TRAINERS);
const parameter = fc.constantFrom("w", "emb");
const element = fc.oneof(
  { weight: 9, arbitrary: fc.float({ min: -4, max: 4, noNaN: true }) },
  { weight: 1, arbitrary: fc.constantFrom(-0, 1e-40, 7e4, Number.NaN) },
);
const elements = fc.array(element, { minLength: ROWS * WIDTH, maxLength: ROWS * WIDTH });
const encoding = fc.constantFrom(undefined, "bfloat16" as const, "float16" as const);

const init: fc.Arbitrary<Write> = fc
  .record({
    parameter,
    epoch: fc.integer({ min: 1, max: 3 }),
    elements,
    optimizer: fc.constantFrom(...OPTIMIZERS),
    stalenessScaling: fc.boolean(),
  })
  .map(({ elements, optimizer, stalenessScaling, ...rest }) => (journal) => {
    const scaling = optimizer === "none" ? {} : { stalenessScaling };
    const config = fullConfig(optimizer, { sparse: rest.parameter === "emb", ...scaling });
    journal.init(Float32Array.from(elements), { ...rest, config, shape: [ROWS, WIDTH] });
  });

const gradient: fc.Arbitrary<Write> = fc
  .record({
    trainer,
    parameter,
    elements,
    encoding,
    rows: fc.option(ascending(ROWS), { nil: undefined }),
    step: fc.integer({ min: 1, max: 3 }),
    seen: fc.option(fc.integer({ min: 1, max: 3 }), { nil: undefined }),
  })
  .map(({ elements, encoding, rows, step, seen, ...sender }) => (journal, inSteps) => {
    const operation: PushOperation = {
      op: "grad",
      ...(inSteps ? { step } : {}),
      ...(seen === undefined ? {} : { seen }),
    };
    const part = sender.parameter === "emb" && rows !== undefined ? { part: { rows } } : {};
    const count = "part" in part ? (rows?.length ?? 0) * WIDTH : ROWS * WIDTH;
    const data = Float32Array.from(elements.slice(0, count));
    journal.push(data, operation, { ...sender, ...part, ...(encoding ? { encoding } : {}) });
  });

const mix: fc.Arbitrary<Write> = fc
  .record({
    trainer,
    parameter,
    elements,
    rows: ascending(ROWS),
    inner: ascending(WIDTH),
    encoding,
  })
  .map(({ elements, rows, inner, encoding, ...sender }) => (journal) => {
    const data = Float32Array.from(elements.slice(0, rows.length * inner.length));
    const operation = { op: "mix", alpha: 0.5, beta: 2 } as const;
    const input = { ...sender, part: { rows, inner }, ...(encoding ? { encoding } : {}) };
    journal.push(data, operation, input);
  });

const members: fc.Arbitrary<Write> = fc
  .record({ revision: fc.integer({ min: 1, max: 5 }), trainers: fc.subarray(TRAINERS) })
  .map((record) => (journal) => journal.host({ verb: "members", started: true, ...record }));

const clock: fc.Arbitrary<Write> = fc
  .record({ trainer, step: fc.integer({ min: 1, max: 3 }) })
  .map(({ trainer, step }) => (journal) => {
    const n = 1_000 - step;
    const record = { verb: "clock", session: 1, n, done: 0, reply: "", step } as const;
    journal.append(SUBJECTS.clock(SHARD, trainer), encodeClock(record));
  });

const modes = fc.constantFrom<SynchronizationInput>(
  "async",
  { mode: "sync", trainers: 2, reduce: "sum" },
  { mode: "sync", trainers: 2, backups: 1 },
  { mode: "ssp", trainers: 2, staleness: 1 },
);

function written(mode: SynchronizationInput, steps: readonly Write[]): Folded {
  const folded = new Folded(mode);
  folded.journal.host({ verb: "members", revision: 1, started: true, trainers: TRAINERS });
  for (const [i, parameter] of ["w", "emb"].entries()) {
    const config = fullConfig(i === 0 ? "adam" : "ftrl", { sparse: i === 1 });
    const values = Float32Array.from({ length: ROWS * WIDTH }, (_, at) => at - 2);
    folded.journal.init(values, { parameter, config, shape: [ROWS, WIDTH] });
  }
  const inSteps = toSynchronization(mode).mode === "sync";
  for (const write of steps) write(folded.journal, inSteps);
  return folded;
}

test("from a state saved at any record it ends in the same state with the same answers", () => {
  const step = fc.oneof(
    { weight: 1, arbitrary: init },
    { weight: 8, arbitrary: gradient },
    { weight: 2, arbitrary: mix },
    { weight: 1, arbitrary: members },
    { weight: 4, arbitrary: clock },
  );
  const codes = new Map<string, number>();
  fc.assert(
    fc.property(
      modes,
      fc.array(step, { minLength: 5, maxLength: 40 }),
      fc.nat(),
      (mode, steps, at) => {
        const folded = written(mode, steps);
        const { records } = folded.journal;
        const cut = 1 + (at % records.length);
        const answers: (RecordAnswer | undefined)[] = [];
        let again: Shard | undefined;
        for (const record of records) {
          answers.push(folded.shard.apply(record));
          if (record.seq === cut) again = folded.restored();
        }
        for (const answer of answers) {
          const code = answer?.outcome.code ?? "applied";
          codes.set(code, (codes.get(code) ?? 0) + 1);
        }
        for (const record of records.slice(cut)) {
          expect(again?.apply(record)).toEqual(answers[record.seq - 1]);
        }
        expect(again?.digest()).toBe(folded.shard.digest());
      },
    ),
    { numRuns: 150 },
  );
  // What the journals are worth: gradients of every kind of fate are among them.
  expect([...codes.keys()]).toEqual(
    expect.arrayContaining(["applied", "NON_FINITE", "LATE", "EARLY"]),
  );
});
