import type { JournalRecord } from "../../../src/actors/fold/shard.ts";
import { sealMessage } from "../../../src/protocol/codec.ts";
import { type Synchronization, toConfig } from "../../../src/protocol/config/index.ts";
import { bytesOf } from "../../../src/protocol/dtypes.ts";
import { encodeHostRecord, type HostRecord } from "../../../src/protocol/host-records.ts";
import { draftRecord, encodeClock } from "../../../src/protocol/records.ts";
import { RULES } from "../fold-maker.ts";
import { SUBJECTS } from "../intents.ts";

/** The one block of each shard. */
export const PARAMETER = "w";
export const ELEMENTS = 1024;
export const SHARDS = 2;

/** What a trainer means by a gradient or, without an element, by a clock. */
export interface TrainerIntent {
  readonly by: "trainer";
  readonly trainer: string;
  readonly session: number;
  readonly n: number;
  readonly step: number;
  /** The element that the gradient is 1 in, the same in no two gradients. */
  readonly element?: number;
}

export type Intent = TrainerIntent | { readonly by: "host"; readonly record: HostRecord };

/** A record on its way. */
export interface Publication extends Omit<JournalRecord, "seq"> {
  readonly intent: Intent;
}

export type Entry = Publication & JournalRecord;

/** The first records of a shard: its rules, and its block with zeros. */
export function firstRecords(shard: number, synchronization: Synchronization): Publication[] {
  const config = toConfig({ learningRate: 1 });
  const place = { shape: [ELEMENTS], start: 0, count: ELEMENTS, config };
  const head = { session: 1, n: 1, done: 0, reply: "", epoch: 1, dtype: "float64" } as const;
  const { shape, start: _start, count: elements } = place;
  const layout = {
    elements,
    blockElements: elements,
    blocks: 1,
    firstShard: shard,
    shards: SHARDS,
  };
  const { dtype, epoch } = head;
  const granted = { name: PARAMETER, dtype, shape, config, epoch, layout };
  const draft = draftRecord({ verb: "init", ...head, ...place }, ELEMENTS * 8);
  draft.data.fill(0);
  return [
    publishHost(shard, { verb: "rules", rules: RULES.version, synchronization }),
    publishHost(shard, { verb: "declare", trainer: "initializer", parameters: [granted] }),
    {
      subject: SUBJECTS.log(shard, "initializer", "init", PARAMETER, 0),
      payload: sealMessage(draft),
      intent: { by: "host", record: { verb: "floor", session: 0 } },
    },
  ];
}

export function publishHost(shard: number, record: HostRecord): Publication {
  const subject = SUBJECTS.hostLog(shard, record.verb);
  return { subject, payload: encodeHostRecord(record), intent: { by: "host", record } };
}

/** A trainer has one record under way in a shard at a time, so all before are done. */
export function publishTrainer(
  shard: number,
  intent: TrainerIntent,
  mode: Synchronization["mode"],
): Publication {
  const { trainer, session, n, step, element } = intent;
  const head = { session, n, done: n - 1, reply: "" };
  if (element === undefined) {
    const payload = encodeClock({ verb: "clock", ...head, step });
    return { subject: SUBJECTS.clock(shard, trainer), payload, intent };
  }
  const values = new Float64Array(ELEMENTS);
  values[element] = 1;
  const operation = { op: "grad", ...(mode === "sync" ? { step } : {}) } as const;
  const draft = draftRecord(
    { verb: "push", ...head, epoch: 1, dtype: "float64", norm: 1, operation },
    values.byteLength,
  );
  draft.data.set(bytesOf(values));
  const subject = SUBJECTS.log(shard, trainer, "push", PARAMETER, 0);
  return { subject, payload: sealMessage(draft), intent };
}
