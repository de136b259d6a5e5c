import type { JournalRecord } from "../../../src/actors/fold/journal-record.ts";
import { sealMessage } from "../../../src/protocol/codec.ts";
import { toConfig } from "../../../src/protocol/config/index.ts";
import {
  bytesOf,
  type Dtype,
  dtypeOf,
  type Encoding,
  type TensorData,
} from "../../../src/protocol/dtypes.ts";

import { toNumbers } from "../../../src/protocol/encoding/half-floats.ts";
import type { Contribution } from "../../../src/protocol/messages/contributions.ts";
import { encodeHostRecord, type HostRecord } from "../../../src/protocol/messages/host-records.ts";
import {
  type PartIndex,
  partCounts,
  partIndexBytes,
  writePartIndex,
} from "../../../src/protocol/messages/parts.ts";
import {
  draftRecord,
  encodeClock,
  encodeNote,
  type InitRecord,
  type NoteEntries,
  type PushOperation,
  type TrainerRecord,
} from "../../../src/protocol/messages/records.ts";

import { JobSubjects } from "../../../src/protocol/subjects.ts";
import { l2Norm } from "../../../src/protocol/tensor.ts";
import { type BatchUpdate, batchPayload, encoded } from "./batch-payload.ts";
import { encodedNorm } from "./encoded-norm.ts";
import { type ContributedBlock, contributionPayload } from "./fragments/contribution-payload.ts";

export { encoded };

/** The job and shard of all fold tests. */
export const SUBJECTS: JobSubjects = new JobSubjects("test");
export const SHARD = 3;
const SHARDS = 4;
/** More than a parameter has blocks. */
const NUMBERS_EACH = 1000;

/** Who sends a record, and which; what is left out is the trainer's next number, nothing done. */
export interface Sender {
  readonly trainer?: string;
  readonly session?: number;
  readonly n?: number;
  readonly done?: number;
  readonly reply?: string;
  readonly parameter?: string;
  readonly index?: number;
  readonly epoch?: number;
  /** That of the elements; without it, that of their bare array. */
  readonly dtype?: Dtype;
}

/** An `init` of a whole parameter of one dimension unless it says otherwise. */
export type InitInput = Sender &
  Partial<Pick<InitRecord, "shape" | "start" | "count" | "updates">> & {
    readonly config?: unknown;
  };

/** A push of a whole block unless it says otherwise. */
export type PushInput = Sender & {
  /** That of the elements unless it is given; null for none. */
  readonly norm?: number | null;
  readonly encoding?: Encoding;
  readonly part?: PartIndex;
};

/** Elements with the index of the part that they are before them. */
function withIndex(part: PartIndex | undefined, elements: Uint8Array): Uint8Array {
  if (part === undefined) return elements;
  const indexBytes = partIndexBytes(partCounts(part));
  const bytes = new Uint8Array(indexBytes + elements.length);
  writePartIndex(bytes, part);
  bytes.set(elements, indexBytes);
  return bytes;
}

/** Writes a journal: gives its records their sequences, and trainers their numbers. */
export class JournalWriter {
  readonly records: JournalRecord[] = [];
  readonly #declares: boolean;
  readonly #numbers: Map<string, number> = new Map();
  /** The numbers of first blocks, by parameter and epoch. */
  readonly #firstNumbers: Map<string, number> = new Map();

  /** `declares`: whether each block is declared before its `init`, as the rules ask. */
  constructor(declares = true) {
    this.#declares = declares;
  }

  /** The number of a block: given to its parameter when somebody asks for one the first time. */
  numberOf(parameter: string, epoch: number, index: number): number {
    const key = JSON.stringify([parameter, epoch]);
    const first = this.#firstNumbers.get(key) ?? 1 + NUMBERS_EACH * this.#firstNumbers.size;
    this.#firstNumbers.set(key, first);
    return first + index;
  }

  append(subject: string, payload: Uint8Array): JournalRecord {
    const record = { seq: this.records.length + 1, subject, payload };
    this.records.push(record);
    return record;
  }

  host(record: HostRecord): JournalRecord {
    return this.append(SUBJECTS.hostLog(SHARD, record.verb), encodeHostRecord(record));
  }

  /** Declares the parameter that this `init` makes a block of, to its trainer, alone in this shard. */
  declare(data: TensorData, input: InitInput = {}): JournalRecord {
    const { trainer = "alice", parameter: name = "w", epoch = 1, index = 0 } = input;
    const { dtype = dtypeOf(data) } = input;
    const { shape = [data.length], start = 0, count = data.length } = input;
    const elements = shape.reduce((product, size) => product * size, 1);
    const blockElements = index === 0 ? count : start / index;
    const layout = {
      elements,
      blockElements,
      blocks: Math.ceil(elements / blockElements),
      firstShard: (SHARDS + SHARD - (index % SHARDS)) % SHARDS,
      shards: SHARDS,
    };
    const config = toConfig(input.config);
    const placed =
      config.fragment === undefined
        ? layout
        : { ...layout, firstShard: SHARD, pinned: true as const };
    const firstNumber = this.numberOf(name, epoch, 0);
    const parameter = { name, dtype, shape, config, epoch, layout: placed, firstNumber };
    return this.host({ verb: "declare", trainer, parameters: [parameter] });
  }

  init(data: TensorData, input: InitInput = {}): JournalRecord {
    const { shape = [data.length], start = 0, count = data.length, config, updates } = input;
    const counted = updates === undefined ? {} : { updates };
    const settings = { shape, start, count, config: toConfig(config), ...counted };
    if (this.#declares) this.declare(data, input);
    return this.trainer(input, bytesOf(data), (head) => {
      return { verb: "init", ...head, dtype: input.dtype ?? dtypeOf(data), ...settings };
    });
  }

  push(data: TensorData, operation: PushOperation, input: PushInput = {}): JournalRecord {
    const { encoding, part, dtype = dtypeOf(data) } = input;
    const elements = encoding === undefined ? bytesOf(data) : encoded(encoding, data);
    const known = encoding
      ? encodedNorm(encoding, elements, data.length)
      : l2Norm(toNumbers(dtype, data));
    const { norm = known } = input;
    return this.trainer(input, withIndex(part, elements), (head) => {
      return {
        verb: "push",
        ...head,
        dtype,
        ...(encoding === undefined ? {} : { encoding }),
        ...(norm === null ? {} : { norm }),
        operation,
        ...(part === undefined ? {} : { part: partCounts(part) }),
      };
    });
  }

  set(data: TensorData, input: Sender = {}): JournalRecord {
    return this.trainer(input, bytesOf(data), (head) => {
      return { verb: "set", ...head, dtype: input.dtype ?? dtypeOf(data) };
    });
  }

  /** Overwrites a slot of a block, whose elements are of type `dtype`, by these bytes. */
  setSlot(slot: number, dtype: Dtype, data: TensorData, input: Sender = {}): JournalRecord {
    return this.trainer(input, bytesOf(data), (head) => ({ verb: "set", ...head, dtype, slot }));
  }

  /** Tells that a trainer has ended a step. */
  clock(trainer: string, step: number, reply = ""): JournalRecord {
    const n = this.#next(`${trainer}/1`);
    const payload = encodeClock({ verb: "clock", session: 1, n, done: 0, reply, step });
    return this.append(SUBJECTS.clock(SHARD, trainer), payload);
  }

  /** A trainer's note. */
  note(note: NoteEntries, sender: Sender = {}): JournalRecord {
    const { trainer = "alice", session = 1, done = 0, reply = "" } = sender;
    const n = this.#next(`${trainer}/${session}`, sender.n);
    const payload = encodeNote({ verb: "note", session, n, done, reply, note });
    return this.append(SUBJECTS.note(SHARD, trainer), payload);
  }

  /** One record of updates of different blocks, in the order of their parameters. */
  batch(updates: readonly BatchUpdate[], sender: Sender = {}): JournalRecord {
    const { trainer = "alice", session = 1, done = 0 } = sender;
    const { reply = `${SUBJECTS.inbox(trainer)}.1` } = sender;
    const n = this.#next(`${trainer}/${session}`, sender.n);
    const head = { session, n, done, reply };
    const subject = SUBJECTS.batch(SHARD, trainer);
    const payload = batchPayload(head, updates, (...block) => this.numberOf(...block));
    return this.append(subject, payload);
  }

  /** One record of a contribution, of these blocks. */
  contribute(
    contribution: Partial<Contribution>,
    blocks: readonly ContributedBlock[],
    sender: Sender = {},
  ): JournalRecord {
    const { trainer = "alice", session = 1, done = 0 } = sender;
    const { reply = `${SUBJECTS.inbox(trainer)}.1` } = sender;
    const n = this.#next(`${trainer}/${session}`, sender.n);
    const payload = contributionPayload(
      { session, n, done, reply },
      contribution,
      blocks,
      (...block) => this.numberOf(...block),
    );
    return this.append(SUBJECTS.contribute(SHARD, trainer), payload);
  }

  trainer(
    sender: Sender,
    data: Uint8Array,
    record: (head: {
      session: number;
      n: number;
      done: number;
      reply: string;
      epoch: number;
    }) => TrainerRecord,
  ): JournalRecord {
    const { trainer = "alice", session = 1, parameter = "w", index = 0 } = sender;
    const n = this.#next(`${trainer}/${session}`, sender.n);
    const { done = 0, reply = `${SUBJECTS.inbox(trainer)}.1`, epoch = 1 } = sender;
    const built = record({ session, n, done, reply, epoch });
    const draft = draftRecord(built, data.length);
    draft.data.set(data);
    const subject = SUBJECTS.log(SHARD, trainer, built.verb, parameter, index);
    return this.append(subject, sealMessage(draft));
  }

  /** The next number of a trainer's session, or a given one, from which it counts on. */
  #next(counter: string, given?: number): number {
    const last = this.#numbers.get(counter) ?? 0;
    const n = given ?? last + 1;
    this.#numbers.set(counter, Math.max(n, last));
    return n;
  }
}
