import type { JournalRecord } from "../../../src/actors/fold/journal-record.ts";
import { sealMessage } from "../../../src/protocol/codec.ts";
import { type Synchronization, toConfig } from "../../../src/protocol/config/index.ts";
import { bytesOf } from "../../../src/protocol/dtypes.ts";
import { draftBatch } from "../../../src/protocol/messages/batch-records.ts";
import { encodeHostRecord, type HostRecord } from "../../../src/protocol/messages/host-records.ts";
import {
  draftRecord,
  encodeClock,
  type TrainerRecord,
} from "../../../src/protocol/messages/records.ts";
import { RULES } from "../fold-maker.ts";
import { SUBJECTS } from "../intents.ts";

/** The one block of each shard that every gradient changes. */
export const PARAMETER = "w";
/** Another one, which only batches change, together with the first. */
export const BATCHED_PARAMETER = "v";
export const PARAMETERS = [PARAMETER, BATCHED_PARAMETER] as const;
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

/** Whether the gradient with this element is a batch for both blocks: about every other one. */
export function isBatched(element: number): boolean {
  return Math.imul(element + 1, 0x9e3779b1) >>> 31 === 1;
}

export type Intent = TrainerIntent | { readonly by: "host"; readonly record: HostRecord };

/** A record on its way. */
export interface Publication extends Omit<JournalRecord, "seq"> {
  readonly intent: Intent;
}

export type Entry = Publication & JournalRecord;

/** The first records of a shard: its rules, and its blocks with zeros. */
export function firstRecords(shard: number, synchronization: Synchronization): Publication[] {
  const config = toConfig({ learningRate: 1 });
  const place = { shape: [ELEMENTS], start: 0, count: ELEMENTS, config };
  const head = { session: 1, done: 0, reply: "", epoch: 1, dtype: "float64" } as const;
  const { shape, start: _start, count: elements } = place;
  const layout = {
    elements,
    blockElements: elements,
    blocks: 1,
    firstShard: shard,
    shards: SHARDS,
  };
  const { dtype, epoch } = head;
  const granted = PARAMETERS.map((name) => ({ name, dtype, shape, config, epoch, layout }));
  return [
    publishHost(shard, { verb: "rules", rules: RULES.version, synchronization }),
    publishHost(shard, { verb: "declare", trainer: "initializer", parameters: granted }),
    ...PARAMETERS.map((name, i): Publication => {
      const draft = draftRecord({ verb: "init", ...head, n: i + 1, ...place }, ELEMENTS * 8);
      draft.data.fill(0);
      return {
        subject: SUBJECTS.log(shard, "initializer", "init", name, 0),
        payload: sealMessage(draft),
        intent: { by: "host", record: { verb: "floor", session: 0 } },
      };
    }),
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
  const record: TrainerRecord = {
    ...{ verb: "push", ...head, epoch: 1, dtype: "float64", norm: 1, operation },
  };
  if (isBatched(element)) {
    return { subject: SUBJECTS.batch(shard, trainer), payload: batchOf(record, values), intent };
  }
  const draft = draftRecord(record, values.byteLength);
  draft.data.set(bytesOf(values));
  const subject = SUBJECTS.log(shard, trainer, "push", PARAMETER, 0);
  return { subject, payload: sealMessage(draft), intent };
}

/** A batch with these values for each of some parameters. */
export function batchOf(
  record: TrainerRecord,
  values: Float64Array,
  parameters: readonly string[] = PARAMETERS,
): Uint8Array {
  const { byteLength: dataBytes } = values;
  const items = parameters.map((parameter) => ({ parameter, index: 0, record, dataBytes }));
  const draft = draftBatch(record, items);
  for (const i of items.keys()) draft.data.set(bytesOf(values), i * dataBytes);
  return sealMessage(draft);
}
