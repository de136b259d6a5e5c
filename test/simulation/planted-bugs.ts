import { entryPayload, offsetsOf } from "../../src/actors/fold/batch/run-change.ts";
import type { JournalRecord } from "../../src/actors/fold/journal-record.ts";
import type { RecordAnswer } from "../../src/actors/fold/shard.ts";
import {
  decodeMessage,
  encodeMessage,
  type Fields,
  sealMessage,
} from "../../src/protocol/codec.ts";
import { PserverError } from "../../src/protocol/errors.ts";
import { draftBatch, parseBatch } from "../../src/protocol/messages/batch-records.ts";
import { encodeHostRecord } from "../../src/protocol/messages/host-records.ts";
import type { TrainerSession } from "../../src/protocol/messages/lifecycle-messages.ts";
import { parseRecordHeader } from "../../src/protocol/messages/records.ts";
import { type Fold, type FoldMaker, SOUND_FOLD } from "./fold-maker.ts";
import { BLOCKS, ELEMENTS, SUBJECTS } from "./intents.ts";
import type { Variant } from "./schedule.ts";

/** A defect, and what the oracle that is there for it says. */
export interface PlantedBug {
  readonly variant: Variant;
  readonly found: RegExp;
}

/** Changes a state on its way out of a snapshot. */
function restoringWith(change: (state: Fields) => Fields): Variant {
  const maker: FoldMaker = {
    create: SOUND_FOLD.create,
    restore: (options, state, readValues) =>
      SOUND_FOLD.restore(options, change(state as Fields), readValues),
  };
  return { maker };
}

/** Puts other methods in front of those of a fold. */
function behaving(change: (fold: Fold) => Partial<Pick<Fold, "apply" | "outcomes">>): Variant {
  const wrap = (fold: Fold): Fold => {
    const changed = new Map(Object.entries(change(fold)));
    return new Proxy(fold, {
      get(target, key) {
        const value: unknown = changed.get(String(key)) ?? Reflect.get(target, key, target);
        return typeof value === "function" ? value.bind(target) : value;
      },
    });
  };
  const maker: FoldMaker = {
    create: (options) => wrap(SOUND_FOLD.create(options)),
    restore: (options, state, readValues) => wrap(SOUND_FOLD.restore(options, state, readValues)),
  };
  return { maker };
}

/** A trainer's record with other entries; host records and unreadable ones stay as they are. */
function rewritten(record: JournalRecord, change: (fields: Fields) => Fields): JournalRecord {
  if (SUBJECTS.parseLog(record.subject).by === "host") return record;
  try {
    const { fields, data } = decodeMessage(record.payload);
    return { ...record, payload: encodeMessage({ ...fields, ...change(fields) }, data) };
  } catch (error) {
    if (error instanceof PserverError) return record;
    throw error;
  }
}

function applyingRewritten(change: (fields: Fields) => Fields): Variant {
  return behaving((fold) => ({ apply: (record) => fold.apply(rewritten(record, change)) }));
}

/**
 * Applies a push as if each session of its trainer were another trainer. An init keeps its trainer: it
 * is to be the one that hosts have selected.
 */
function applyApart(fold: Fold, record: JournalRecord): RecordAnswer | undefined {
  const parsed = SUBJECTS.parseLog(record.subject);
  if (parsed.by !== "trainer" || parsed.verb === "init") return fold.apply(record);
  let sender = { session: 0, reply: "" };
  const apart = rewritten(record, (fields) => {
    sender = { session: Number(fields["session"]), reply: String(fields["reply"]) };
    return { reply: "" };
  });
  const { shard, trainer, verb, parameter, index } = parsed;
  const subject = SUBJECTS.log(shard, `${trainer}-${sender.session}`, verb, parameter, index);
  const settled = fold.apply({ ...apart, subject });
  return settled && { ...settled, trainer, reply: sender.reply };
}

/** Applies a batch as if each of a trainer's sessions, or each copy, were another trainer. */
function applyBatchAs(
  fold: Fold,
  record: JournalRecord,
  sender: (trainer: string, session: number) => string,
): RecordAnswer | undefined {
  const parsed = SUBJECTS.parseLog(record.subject);
  if (parsed.by !== "batch") return fold.apply(record);
  let head = { session: 0, reply: "" };
  const apart = rewritten(record, (fields) => {
    head = { session: Number(fields["session"]), reply: String(fields["reply"]) };
    return { reply: "" };
  });
  const subject = SUBJECTS.batch(parsed.shard, sender(parsed.trainer, head.session));
  const settled = fold.apply({ ...apart, subject });
  return settled && { ...settled, trainer: parsed.trainer, reply: head.reply };
}

/** A batch without the entries that are too short for their blocks. */
function fittingEntries(record: JournalRecord): JournalRecord {
  if (SUBJECTS.parseLog(record.subject).by !== "batch") return record;
  try {
    const message = decodeMessage(record.payload);
    const [run] = parseBatch(message, BLOCKS).runs;
    if (run === undefined) return record;
    const fits = [...run.counts.keys()].filter((place) => run.counts[place] === ELEMENTS);
    const own = {
      ...run,
      numbers: Uint32Array.from(fits, (place) => run.numbers[place] as number),
      counts: new Uint32Array(fits.length).fill(ELEMENTS),
    };
    const { draft, values } = draftBatch(parseRecordHeader(message.fields), [own]);
    fits.forEach((place, i) => {
      values[0]?.set(entryPayload(run, place, offsetsOf(run, place)).bytes, i * 8 * ELEMENTS);
    });
    return { ...record, payload: sealMessage(draft) };
  } catch (error) {
    if (error instanceof PserverError) return record;
    throw error;
  }
}

const withoutOutcomes = (trainers: unknown): unknown[] =>
  (trainers as unknown[][]).map(([trainer, session, done]) => [trainer, session, done, []]);

/** Defects that the oracles must find, by what is wrong. */
export const PLANTED_BUGS: Readonly<Record<string, PlantedBug>> = {
  "a restore that forgets outcomes": {
    variant: restoringWith((state) => ({
      ...state,
      trainers: withoutOutcomes(state["trainers"]),
    })),
    found: /two owners answer record/,
  },
  "a restore that forgets trainers": {
    variant: restoringWith((state) => ({ ...state, trainers: [] })),
    found: /two owners answer record/,
  },
  "a restore that forgets the floor": {
    variant: restoringWith((state) => ({ ...state, floor: 0 })),
    found: /two owners answer record|another state at .* than its journal/,
  },
  "a restore that forgets which sessions are live": {
    variant: restoringWith((state) => ({ ...state, live: [] })),
    found: /expected one entry|two owners answer record|another state at .* than its journal/,
  },
  "a restore that forgets what was declared": {
    variant: restoringWith((state) => ({ ...state, declared: [] })),
    found: /two owners answer record|another state at .* than its journal/,
  },
  "a fold that misses ended sessions": {
    variant: behaving((fold) => ({
      apply: (record) => {
        const missed = record.subject === SUBJECTS.hostLog(0, "sessions");
        return fold.apply(
          missed ? { ...record, payload: new Uint8Array(0), reread: true } : record,
        );
      },
    })),
    found: /does add 1 to .*, not nothing/,
  },
  "a fold that forgets trainers whatever their sessions are": {
    variant: behaving((fold) => ({
      apply: (record) => {
        if (record.subject !== SUBJECTS.hostLog(0, "forget")) return fold.apply(record);
        const trainers = fold.saveState().trainers.map(([id, session]): TrainerSession => {
          return [id, session];
        });
        return fold.apply({ ...record, payload: encodeHostRecord({ verb: "forget", trainers }) });
      },
    })),
    found: /does add 1 to .*, not nothing/,
  },
  "a fold that ignores done": {
    variant: applyingRewritten(() => ({ done: 0 })),
    found: /was answered WINDOW/,
  },
  "a fold that forgets a number too early": {
    variant: applyingRewritten(({ n }) => ({ done: Number(n) - 1 })),
    found: /is SETTLED too early/,
  },
  "a fold that applies superseded sessions": {
    variant: behaving((fold) => ({
      apply: (record) => applyApart(fold, record),
      outcomes: (trainer, request) => {
        const apart = fold.outcomes(`${trainer}-${request.session}`, request);
        const inits = fold.outcomes(trainer, request);
        return apart.map((push, i) => (push.code === "BAD_CHECKSUM" ? (inits[i] ?? push) : push));
      },
    })),
    found: /does add 1 to .*, not nothing/,
  },
  "a fold that applies the entries of a batch that fit": {
    variant: behaving((fold) => ({ apply: (record) => fold.apply(fittingEntries(record)) })),
    found: /does add 1 to .*, not nothing/,
  },
  "a fold that applies every copy of a batch": {
    variant: behaving((fold) => ({
      apply: (record) => applyBatchAs(fold, record, (trainer) => `${trainer}-${record.seq}`),
    })),
    found: /does add 1 to .*, not nothing/,
  },
  "a fold that applies batches of a session after the trainer has joined again": {
    variant: behaving((fold) => ({
      apply: (record) => applyBatchAs(fold, record, (trainer, session) => `${trainer}-${session}`),
      outcomes: (trainer, request) => {
        const batches = fold.outcomes(`${trainer}-${request.session}`, request);
        const others = fold.outcomes(trainer, request);
        return batches.map((batch, i) =>
          batch.code === "BAD_CHECKSUM" ? (others[i] ?? batch) : batch,
        );
      },
    })),
    found: /does add 1 to .*, not nothing/,
  },
  "a fold that ignores the epoch of pushes": {
    variant: behaving((fold) => ({
      apply: (record) => {
        const parsed = SUBJECTS.parseLog(record.subject);
        if (parsed.by !== "trainer" || parsed.verb !== "push") return fold.apply(record);
        const epoch = fold.block(parsed.parameter, parsed.index)?.epoch;
        return fold.apply(rewritten(record, () => (epoch === undefined ? {} : { epoch })));
      },
    })),
    found: /does add 1 to .*, not nothing/,
  },
  "a fold that misses drops": {
    variant: behaving((fold) => ({
      apply: (record) => {
        const missed = record.subject === SUBJECTS.hostLog(0, "drop");
        return fold.apply(
          missed ? { ...record, payload: new Uint8Array(0), reread: true } : record,
        );
      },
    })),
    found: /does nothing, not remove/,
  },
  "a fold that calls every outcome applied": {
    variant: behaving((fold) => ({
      apply: (record) => {
        const settled = fold.apply(record);
        if (settled === undefined) return undefined;
        const { n, seq } = settled.outcome;
        return { ...settled, outcome: { n, seq, version: 1 } };
      },
    })),
    found: /applied, yet applied 0 times/,
  },
  "a snapshot whose values are copied late": {
    variant: { owner: { copiesLate: true } },
    found: /the snapshot at .* holds another state|another state at .* than its journal/,
  },
  "an owner that answers before it has folded": {
    variant: { owner: { answersEarly: true } },
    found: /was answered BAD_CHECKSUM|applied, then rejected/,
  },
  "an owner that skips a record when it takes over": {
    variant: { owner: { skipsRecord: true } },
    found: /two owners answer record|another state at .* than its journal/,
  },
  "an owner that goes on behind a gap before a snapshot says so": {
    variant: { owner: { skipsSilently: true } },
    found: /is stopped by a gap/,
  },
  "an owner that takes used up sequences for records": {
    variant: { owner: { countsSequences: true } },
    found: /is stopped by a gap/,
  },
  "an owner that folds what was damaged in transit": {
    variant: { owner: { trustsDeliveries: true } },
    found: /two owners answer record|was answered BAD_CHECKSUM/,
  },
  "an owner that takes an earlier end of the journal for the present one": {
    variant: { owner: { trustsOldEnds: true } },
    found: /is said to be lost/,
  },
  "an owner that removes what an older snapshot needs": {
    variant: { owner: { forgetsOlder: true } },
    found: /message .* of a kept snapshot is gone/,
  },
  "a trainer that repeats under a new number": {
    variant: { trainer: { renumbers: true } },
    found: /applied 2 times|added to 2 times/,
  },
  "a trainer that promises more than it keeps": {
    variant: { trainer: { overpromises: true } },
    found: /is SETTLED too early/,
  },
};
