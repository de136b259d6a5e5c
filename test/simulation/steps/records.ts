import type { JournalRecord } from "../../../src/actors/fold/journal-record.ts";
import { sealMessage } from "../../../src/protocol/codec.ts";
import { type Synchronization, toConfig } from "../../../src/protocol/config/index.ts";
import { bytesOf, type Encoding, encodedBytes, isGrouped } from "../../../src/protocol/dtypes.ts";
import { encodeElements } from "../../../src/protocol/encoding/encoding.ts";
import { encodeGroups } from "../../../src/protocol/encoding/grouped.ts";
import { draftBatch } from "../../../src/protocol/messages/batch-records.ts";
import { encodeHostRecord, type HostRecord } from "../../../src/protocol/messages/host-records.ts";
import {
  draftRecord,
  encodeClock,
  type RecordHeader,
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
  const head = { session: 1, done: 0, reply: "", epoch: 1, dtype: "float32" } as const;
  const { shape, start: _start, count: elements } = place;
  const layout = {
    elements,
    blockElements: elements,
    blocks: 1,
    firstShard: shard,
    shards: SHARDS,
  };
  const { dtype, epoch } = head;
  const granted = PARAMETERS.map((name) => {
    return { name, dtype, shape, config, epoch, layout, firstNumber: numberOf(name) };
  });
  return [
    publishHost(shard, { verb: "rules", rules: RULES.version, synchronization }),
    publishHost(shard, { verb: "declare", trainer: "initializer", parameters: granted }),
    ...PARAMETERS.map((name, i): Publication => {
      const draft = draftRecord({ verb: "init", ...head, n: i + 1, ...place }, ELEMENTS * 4);
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
  const values = new Float32Array(ELEMENTS);
  values[element] = 1;
  const encoding = encodingOf(values);
  const operation = { op: "grad", step: mode === "sync" ? step : undefined } as const;
  const record: TrainerRecord = {
    ...{ verb: "push", ...head, epoch: 1, dtype: "float32", encoding, norm: 1, operation },
  };
  if (isBatched(element)) {
    const payload = batchOf(head, operation.step, values);
    return { subject: SUBJECTS.batch(shard, trainer), payload, intent };
  }
  const draft = draftRecord(record, encodedBytes("float32", encoding, ELEMENTS));
  if (encoding === undefined) draft.data.set(bytesOf(values));
  else encodeElements(encoding, values, draft.data);
  const subject = SUBJECTS.log(shard, trainer, "push", PARAMETER, 0);
  return { subject, payload: sealMessage(draft), intent };
}

/** The number of a parameter's block, the same in each shard. */
function numberOf(parameter: string): number {
  return 1 + (PARAMETERS as readonly string[]).indexOf(parameter);
}

const NO_BYTES = new Uint8Array(0);

/** The encoding of a gradient, by its element that is not 0: all of them hold whole numbers. */
function encodingOf(values: Float32Array): Encoding | undefined {
  return ([undefined, "float16", "int8", "e3m0"] as const)[values.findIndex((x) => x !== 0) % 4];
}

/** A batch with these values for each of some parameters. */
export function batchOf(
  head: RecordHeader,
  step: number | undefined,
  values: Float32Array,
  parameters: readonly string[] = PARAMETERS,
): Uint8Array {
  const encoding = encodingOf(values);
  const counts = new Uint32Array(parameters.length).fill(values.length);
  const all = new Float32Array(parameters.length * values.length);
  for (const i of parameters.keys()) all.set(values, i * values.length);
  const {
    draft,
    values: [codes = NO_BYTES],
    scales: [scales = NO_BYTES],
  } = draftBatch(head, [
    {
      ...({ verb: "push", dtype: "float32", encoding, parts: undefined } as const),
      operation: { op: "grad", step },
      numbers: Uint32Array.from(parameters, (name) => numberOf(name)),
      counts,
      norms: new Float64Array(parameters.length).fill(1),
      seen: undefined,
    },
  ]);
  if (isGrouped(encoding)) encodeGroups(encoding, counts, all, { scales, codes });
  else if (encoding === undefined) codes.set(bytesOf(all));
  else encodeElements(encoding, all, codes);
  return sealMessage(draft);
}
