import { RULES_1 } from "../../../../src/actors/fold/rules.ts";
import {
  type ParameterConfigInput,
  type SynchronizationInput,
  toSynchronization,
} from "../../../../src/protocol/config/index.ts";
import {
  bytesOf,
  type Dtype,
  dtypeOf,
  type Encoding,
  encodedBytes,
  type TensorData,
} from "../../../../src/protocol/dtypes.ts";
import { encodeElements } from "../../../../src/protocol/encoding/encoding.ts";
import { toNumbers } from "../../../../src/protocol/encoding/half-floats.ts";
import {
  partCounts,
  partIndexBytes,
  writePartIndex,
} from "../../../../src/protocol/messages/parts.ts";
import {
  encodeClock,
  encodeNote,
  type NoteEntries,
  type PushOperation,
  type RecordHeader,
} from "../../../../src/protocol/messages/records.ts";

import { l2Norm } from "../../../../src/protocol/tensor.ts";
import { type BatchUpdate, batchPayload } from "../batch-payload.ts";
import { encodedNorm } from "../encoded-norm.ts";
import { JournalWriter, type Sender, SHARD, SUBJECTS } from "../journal-writer.ts";

/** Where an update goes and how it is written. */
export interface Update {
  /** By default `alice`. */
  readonly trainer?: string;
  readonly parameter: string;
  readonly data: TensorData;
  /** By default that of the bare array. */
  readonly dtype?: Dtype;
  /** By default a gradient that says no more. */
  readonly operation?: PushOperation;
  readonly encoding?: Encoding;
  readonly part?: { readonly rows: readonly number[]; readonly inner?: readonly number[] };
}

/** Writes the records of one journal as trainers and hosts send them. */
export class SceneWriter {
  readonly #journal: JournalWriter = new JournalWriter(false);
  /** The last number of each trainer. */
  readonly #numbers: Map<string, number> = new Map();

  get journal(): JournalWriter {
    return this.#journal;
  }

  /** Puts the rules into force: the first record. */
  rules(synchronization?: SynchronizationInput): void {
    const settings =
      synchronization === undefined ? {} : { synchronization: toSynchronization(synchronization) };
    this.#journal.host({ verb: "rules", rules: RULES_1.version, ...settings });
  }

  /** The first record of a block that is a whole parameter. */
  init(
    parameter: string,
    data: TensorData,
    config: ParameterConfigInput,
    shape: readonly number[] = [data.length],
    dtype: Dtype = dtypeOf(data),
  ): void {
    this.#journal.declare(data, { parameter, config, shape, dtype });
    this.#journal.init(data, { ...this.#sender("alice"), parameter, config, shape, dtype });
  }

  push(update: Update): void {
    const { trainer = "alice", parameter, data, operation = { op: "grad" }, encoding } = update;
    const { dtype = dtypeOf(data) } = update;
    const elements = encoding === undefined ? bytesOf(data) : encoded(encoding, data);
    const norm =
      encoding === undefined
        ? l2Norm(toNumbers(dtype, data))
        : encodedNorm(encoding, elements, data.length);
    const index = update.part && {
      rows: Uint32Array.from(update.part.rows),
      ...(update.part.inner === undefined ? {} : { inner: Uint32Array.from(update.part.inner) }),
    };
    const part = index && partCounts(index);
    const payload = new Uint8Array((part ? partIndexBytes(part) : 0) + elements.length);
    payload.set(elements, index ? writePartIndex(payload, index) : 0);
    const sender = { ...this.#sender(trainer), trainer, parameter };
    this.#journal.trainer(sender, payload, (head) => ({
      verb: "push",
      ...head,
      dtype,
      norm,
      operation,
      ...(encoding === undefined ? {} : { encoding }),
      ...(part === undefined ? {} : { part }),
    }));
  }

  /** One record of updates of several blocks. */
  batch(updates: readonly BatchUpdate[], trainer = "alice"): void {
    this.batchOf(
      (head) => batchPayload(head, updates, (...block) => this.#journal.numberOf(...block)),
      trainer,
    );
  }

  /** A record on the subject of batches, of whatever form. */
  batchOf(toPayload: (head: RecordHeader) => Uint8Array, trainer = "alice"): void {
    const { n, done } = this.#sender(trainer);
    const reply = `${SUBJECTS.inbox(trainer)}.1`;
    const payload = toPayload({ session: 1, n, done, reply });
    this.#journal.append(SUBJECTS.batch(SHARD, trainer), payload);
  }

  /** A trainer's note. */
  note(note: NoteEntries, trainer = "alice"): void {
    this.noteOf((head) => encodeNote({ verb: "note", ...head, note }), trainer);
  }

  /** A record on the subject of notes, of whatever form. */
  noteOf(toPayload: (head: RecordHeader) => Uint8Array, trainer = "alice"): void {
    const { n, done } = this.#sender(trainer);
    const reply = `${SUBJECTS.inbox(trainer)}.1`;
    const payload = toPayload({ session: 1, n, done, reply });
    this.#journal.append(SUBJECTS.note(SHARD, trainer), payload);
  }

  set(parameter: string, data: TensorData, dtype: Dtype = dtypeOf(data)): void {
    this.#journal.set(data, { ...this.#sender("alice"), parameter, dtype });
  }

  /** Tells that a trainer has ended a step. */
  clock(trainer: string, step: number): void {
    const { n, done } = this.#sender(trainer);
    const reply = `${SUBJECTS.inbox(trainer)}.1`;
    const payload = encodeClock({ verb: "clock", session: 1, n, done, reply, step });
    this.#journal.append(SUBJECTS.clock(SHARD, trainer), payload);
  }

  /** A trainer's next number; it has seen all outcomes before, so the shard forgets them. */
  #sender(trainer: string): Required<Pick<Sender, "n" | "done">> {
    const done = this.#numbers.get(trainer) ?? 0;
    this.#numbers.set(trainer, done + 1);
    return { n: done + 1, done };
  }
}

function encoded(encoding: Encoding, data: TensorData): Uint8Array {
  if (!(data instanceof Float32Array)) throw new Error(`${encoding} is of float32 only`);
  const bytes = new Uint8Array(encodedBytes("float32", encoding, data.length));
  encodeElements(encoding, data, bytes);
  return bytes;
}
