import { sealMessage } from "../../src/protocol/codec.ts";
import { toConfig } from "../../src/protocol/config/index.ts";
import { encodeHostRecord, type HostRecord } from "../../src/protocol/host-records.ts";
import { draftRecord, type TrainerRecord } from "../../src/protocol/records.ts";
import { JobSubjects } from "../../src/protocol/subjects.ts";

export const SUBJECTS: JobSubjects = new JobSubjects("simulation");
export const SHARD = 0;
export const PARAMETER = "w";

/** Blocks of the one parameter, all in the one shard. */
export const BLOCKS = 2;

/** Elements of a block: each push adds 1 to an element of its own, which shows how often it was applied. */
export const ELEMENTS = 128;

const CONFIG = toConfig();

/** What a trainer means by a record; the simulation's own knowledge, which the fold never sees. */
export interface TrainerIntent {
  readonly by: "trainer";
  readonly trainer: string;
  readonly session: number;
  readonly n: number;
  readonly done: number;
  readonly reply: string;
  readonly verb: "init" | "push";
  readonly index: number;
  readonly epoch: number;
  /** The element that a push adds 1 to, the same in no two pushes; -1 for an init. */
  readonly element: number;
  /** A flaw that makes every copy of the record unreadable, or unfit for its block. */
  readonly flaw: "none" | "damaged" | "unfit";
}

export interface HostIntent {
  readonly by: "host";
  readonly record: HostRecord;
}

export type Intent = TrainerIntent | HostIntent;

/** A record as it is published. */
export interface Publication {
  readonly subject: string;
  readonly payload: Uint8Array;
  readonly intent: Intent;
}

export function publishHost(record: HostRecord): Publication {
  const subject = SUBJECTS.hostLog(SHARD, record.verb);
  return { subject, payload: encodeHostRecord(record), intent: { by: "host", record } };
}

/** Hosts let a trainer initialize the parameter under an epoch. */
export function publishGrant(trainer: string, epoch: number): Publication {
  const elements = BLOCKS * ELEMENTS;
  const layout = {
    elements,
    blockElements: ELEMENTS,
    blocks: BLOCKS,
    firstShard: SHARD,
    shards: 1,
  };
  const place = { name: PARAMETER, dtype: "int64" as const, shape: [elements], layout };
  return publishHost({
    verb: "declare",
    trainer,
    parameters: [{ ...place, config: CONFIG, epoch }],
  });
}

export function publishTrainer(intent: TrainerIntent): Publication {
  const { trainer, verb, index, flaw, element } = intent;
  const count = verb === "push" && flaw === "unfit" ? ELEMENTS - 1 : ELEMENTS;
  const data = new BigInt64Array(count);
  if (verb === "push") data[element] = 1n;
  const draft = draftRecord(toRecord(intent), data.byteLength);
  draft.data.set(new Uint8Array(data.buffer));
  const payload = sealMessage(draft);
  if (flaw === "damaged") payload[payload.length - 1] = 0xff;
  const subject = SUBJECTS.log(SHARD, trainer, verb, PARAMETER, index);
  return { subject, payload, intent };
}

function toRecord(intent: TrainerIntent): TrainerRecord {
  const { session, n, done, reply, epoch, verb, index } = intent;
  const head = { session, n, done, reply, epoch, dtype: "int64" as const };
  if (verb === "push") {
    return { verb, ...head, norm: 0, operation: { op: "mix", alpha: 1, beta: 1 } };
  }
  const place = { shape: [BLOCKS * ELEMENTS], start: index * ELEMENTS, count: ELEMENTS };
  return { verb, ...head, ...place, config: CONFIG };
}
