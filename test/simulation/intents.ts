import { sealMessage } from "../../src/protocol/codec.ts";
import { toConfig } from "../../src/protocol/config/index.ts";
import { draftBatch } from "../../src/protocol/messages/batch-records.ts";
import { encodeHostRecord, type HostRecord } from "../../src/protocol/messages/host-records.ts";
import { draftRecord, type TrainerRecord } from "../../src/protocol/messages/records.ts";
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
  /** A batch is one record with a push to every block. */
  readonly verb: "init" | "push" | "batch";
  /** The block; of a batch, the first. */
  readonly index: number;
  readonly epoch: number;
  /**
   * The element that a push adds 1 to, a batch in every block; the same in no two wishes; -1 for an init.
   */
  readonly element: number;
  /** A flaw that makes every copy of the record unreadable, or unfit for its block, or its last one. */
  readonly flaw: "none" | "damaged" | "unfit";
}

interface HostIntent {
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
    parameters: [{ ...place, config: CONFIG, epoch, firstNumber: numberOf(epoch, 0) }],
  });
}

/** The number of a block: each initialization gives others. */
function numberOf(epoch: number, index: number): number {
  return 1 + epoch * BLOCKS + index;
}

export function publishTrainer(intent: TrainerIntent): Publication {
  const payload = intent.verb === "batch" ? batchPayload(intent) : payloadOf(intent, intent.verb);
  if (intent.flaw === "damaged") payload[payload.length - 1] = 0xff;
  return { subject: subjectOf(intent), payload, intent };
}

/** The blocks that a trainer's record is about. */
export function blocksOf({ verb, index }: Pick<TrainerIntent, "verb" | "index">): number[] {
  return verb === "batch" ? Array.from({ length: BLOCKS }, (_, block) => block) : [index];
}

function subjectOf({ trainer, verb, index }: TrainerIntent): string {
  if (verb === "batch") return SUBJECTS.batch(SHARD, trainer);
  return SUBJECTS.log(SHARD, trainer, verb, PARAMETER, index);
}

function payloadOf(intent: TrainerIntent, verb: "init" | "push"): Uint8Array {
  const data = new Uint8Array(elementsOf(intent, intent.index).buffer);
  const draft = draftRecord(toRecord(intent, verb), data.length);
  draft.data.set(data);
  return sealMessage(draft);
}

function batchPayload(intent: TrainerIntent): Uint8Array {
  const blocks = blocksOf(intent);
  const pieces = blocks.map((index) => elementsOf(intent, index));
  const run = {
    ...({ verb: "push", dtype: "int64", encoding: undefined, parts: undefined } as const),
    operation: { op: "mix", alpha: 1, beta: 1 } as const,
    ...{ norms: undefined, seen: undefined },
    numbers: Uint32Array.from(blocks, (index) => numberOf(intent.epoch, index)),
    counts: Uint32Array.from(pieces, ({ length }) => length),
  };
  const { draft, values } = draftBatch(toRecord(intent, "push"), [run]);
  let at = 0;
  for (const piece of pieces) {
    values[0]?.set(new Uint8Array(piece.buffer), at);
    at += piece.byteLength;
  }
  return sealMessage(draft);
}

/** What is added to a block, or what it begins with; an unfit record has too little for its last block. */
function elementsOf({ verb, flaw, element, index: only }: TrainerIntent, index: number) {
  const last = verb === "batch" ? BLOCKS - 1 : only;
  const isShort = verb !== "init" && flaw === "unfit" && index === last;
  const data = new BigInt64Array(isShort ? ELEMENTS - 1 : ELEMENTS);
  if (verb !== "init") data[element] = 1n;
  return data;
}

function toRecord(intent: TrainerIntent, verb: "init" | "push"): TrainerRecord {
  const { session, n, done, reply, epoch, index } = intent;
  const head = { session, n, done, reply, epoch, dtype: "int64" as const };
  if (verb === "push") {
    return { verb, ...head, norm: 0, operation: { op: "mix", alpha: 1, beta: 1 } };
  }
  const place = { shape: [BLOCKS * ELEMENTS], start: index * ELEMENTS, count: ELEMENTS };
  return { verb, ...head, ...place, config: CONFIG };
}
