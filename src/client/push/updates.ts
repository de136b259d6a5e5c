import { type Allocate, sealMessage } from "../../protocol/codec.ts";
import { checkFinite, checkLearningRate } from "../../protocol/config/index.ts";
import { type Encoding, encodedBytes } from "../../protocol/dtypes.ts";
import { ensureError, PserverError, reactionTo } from "../../protocol/errors.ts";
import {
  BATCH_BYTES,
  BATCH_ENTRIES_MAX,
  BATCH_ENTRY_BYTES_MAX,
  BATCH_HEAD_BYTES_MAX,
  HEADER_BYTES_MAX,
} from "../../protocol/limits.ts";
import { type BatchItem, draftBatch, paddedBytes } from "../../protocol/messages/batch-records.ts";
import type { ParameterInfo } from "../../protocol/messages/lifecycle-messages.ts";
import {
  checkNote,
  encodeNote,
  NOTE_BYTES_MAX,
  NOTE_SHARD,
  type NoteEntries,
  type RecordHeader,
} from "../../protocol/messages/records.ts";
import { quoteName } from "../../protocol/names.ts";
import type { JobSubjects } from "../../protocol/subjects.ts";
import type { TensorLike } from "../../protocol/tensor.ts";
import type { Ack, Deadline } from "../calls/calls.ts";
import type { Parameters, SeenVersions } from "../calls/parameters.ts";
import type { Session } from "../io/session.ts";
import type { GradResult, Steps } from "../io/steps.ts";
import type { EntrySource, Topic, UpdateSender, UpdateSource } from "../io/update-sender.ts";
import { type IndexList, planPart, slicePart } from "../part-plan.ts";
import {
  checkFiniteElements,
  type Entries,
  entriesOf,
  fitData,
  fitTensor,
  type GradientRecord,
  gradientUpdates,
  type Push,
  partUpdates,
  pushUpdates,
  setUpdates,
  type TensorRecord,
} from "./block-updates.ts";

/** Updates of several blocks of one shard that go in one record. */
class BatchUpdate implements UpdateSource {
  readonly subject: string;
  readonly shard: number;
  readonly topic: Topic;
  readonly blocks: number;
  readonly dataBytes: number;
  readonly #entries: readonly EntrySource[];

  /** Joins entries; `subject` is that of the sender's batches in the shard. */
  constructor(subject: string, shard: number, entries: readonly EntrySource[]) {
    this.subject = subject;
    this.shard = shard;
    this.#entries = entries;
    this.topic = { kind: "blocks", blocks: entries };
    this.blocks = entries.length;
    this.dataBytes = entries.reduce((sum, { entryBytes }) => sum + paddedBytes(entryBytes), 0);
  }

  get namesVersion(): boolean {
    return this.#entries.some(({ namesVersion }) => namesVersion);
  }

  draft(header: RecordHeader, namesVersion: boolean, allocate?: Allocate): Uint8Array {
    const items = this.#entries.map((entry): BatchItem => {
      const { parameter, index, entryBytes: dataBytes } = entry;
      const record = entry.record(header, namesVersion && entry.namesVersion);
      return { parameter, index, record, dataBytes };
    });
    const draft = draftBatch(header, items, allocate);
    let at = 0;
    for (const entry of this.#entries) {
      const { entryBytes } = entry;
      entry.writeEntry(draft.data.subarray(at, at + entryBytes));
      at += paddedBytes(entryBytes);
    }
    return sealMessage(draft);
  }
}

/** Most bytes of those entries of a header that all records have. */
const RECORD_HEADER_BYTES_MAX = 1024;
/**
 * Most bytes of a block in the header of a batch: its row, and the version that its gradient was made from.
 */
const ROW_BYTES_MAX = 34;

/** Dependencies of {@link inBatches}. */
interface BatchDeps {
  readonly session: Session;
  readonly subjects: JobSubjects;
  readonly trainer: string;
  /** The largest message the broker takes. */
  readonly payloadBytesMax: () => number;
}

/** Joins the updates of one call as {@link fillBatches} does. */
export function inBatches(
  updates: readonly UpdateSource[],
  deps: BatchDeps,
): readonly UpdateSource[] {
  const { session, subjects, trainer, payloadBytesMax } = deps;
  return fillBatches(updates, {
    subject: (shard) => subjects.batch(shard, trainer),
    payloadBytesMax: payloadBytesMax(),
    separatesIntegers: session.synchronization.mode === "sync",
  });
}

/** Dependencies and limits of {@link fillBatches}. */
interface BatchOptions {
  /** Subject of the sender's batches in a shard. */
  readonly subject: (shard: number) => string;
  /** The largest message that the broker takes. */
  readonly payloadBytesMax: number;
  /** Whether gradients of integers, which do not wait for a step, have other batches than those of floats. */
  readonly separatesIntegers: boolean;
}

/** A batch that is being filled. */
interface OpenBatch {
  /** Place of its first update in the result. */
  readonly place: number;
  readonly first: UpdateSource;
  readonly entries: EntrySource[];
  dataBytes: number;
  headerBytes: number;
}

/**
 * Joins the small updates of one call, those of each shard into as few records as the limits of batches
 * admit. A large update keeps its own record, as does a small one without another. Within a shard the small
 * ones stay in order, and so do the large ones.
 */
export function fillBatches(
  updates: readonly UpdateSource[],
  options: BatchOptions,
): readonly UpdateSource[] {
  const records: UpdateSource[] = [];
  const open = new Map<number, OpenBatch>();
  for (const update of updates) {
    const { entry } = update;
    if (entry === undefined || entry.entryBytes >= BATCH_ENTRY_BYTES_MAX) {
      records.push(update);
      continue;
    }
    const key = 2 * update.shard + (options.separatesIntegers && !entry.isFloat ? 1 : 0);
    const batch = open.get(key);
    if (batch === undefined || !add(batch, entry, options)) {
      if (batch !== undefined) close(batch, records, options);
      open.set(key, begin(update, entry, records.length));
      records.push(update);
    }
  }
  for (const batch of open.values()) close(batch, records, options);
  return records;
}

function begin(first: UpdateSource, entry: EntrySource, place: number): OpenBatch {
  const headerBytes = RECORD_HEADER_BYTES_MAX + entry.groupBytesMax + ROW_BYTES_MAX;
  return { place, first, entries: [entry], dataBytes: paddedBytes(entry.entryBytes), headerBytes };
}

/**
 * Adds an entry if the limits admit it and its block comes after the earlier ones of its parameter; returns
 * whether it did.
 */
function add(batch: OpenBatch, entry: EntrySource, { payloadBytesMax }: BatchOptions): boolean {
  const last = batch.entries.at(-1);
  const isSameGroup = last?.parameter === entry.parameter;
  if (isSameGroup && entry.index <= last.index) return false;
  const headerBytes = batch.headerBytes + ROW_BYTES_MAX + (isSameGroup ? 0 : entry.groupBytesMax);
  const dataBytes = batch.dataBytes + paddedBytes(entry.entryBytes);
  const fits =
    batch.entries.length < BATCH_ENTRIES_MAX &&
    dataBytes <= BATCH_BYTES &&
    headerBytes <= BATCH_HEAD_BYTES_MAX &&
    headerBytes + dataBytes <= payloadBytesMax;
  if (!fits) return false;
  batch.entries.push(entry);
  batch.dataBytes = dataBytes;
  batch.headerBytes = headerBytes;
  return true;
}

/** Puts the batch in the place of its first update. */
function close(batch: OpenBatch, records: UpdateSource[], { subject }: BatchOptions): void {
  const { place, first, entries } = batch;
  if (entries.length === 1) return;
  records[place] = new BatchUpdate(subject(first.shard), first.shard, entries);
}

/** Dependencies of Updates. */
export interface UpdatesDeps {
  readonly sender: UpdateSender;
  readonly parameters: Parameters;
  readonly subjects: JobSubjects;
  readonly trainer: string;
  readonly seen: SeenVersions;
  readonly steps: Steps;
  readonly session: Session;
  /** The largest message the broker takes. */
  readonly payloadBytesMax: () => number;
}

/** Options of an update that concern its records. */
interface UpdateMode {
  readonly ack?: Ack | undefined;
  readonly encoding?: Encoding | undefined;
}

/** value = alpha · value + beta · tensor. */
export interface Mix {
  readonly alpha: number;
  readonly beta: number;
}

/** Changes of initialized parameters. All tensors of a call are checked before any is sent. */
export class Updates {
  readonly #options: UpdatesDeps;

  constructor(options: UpdatesDeps) {
    this.#options = options;
  }

  /** Applies a gradient to each parameter; see `Client.sendGrads`. */
  async sendGrads(
    grads: GradientRecord,
    deadline: Deadline,
    options: UpdateMode & { learningRate?: number; endStep?: boolean },
  ): Promise<GradResult> {
    const { learningRate, encoding, endStep = true } = options;
    if (learningRate !== undefined) checkLearningRate(learningRate);
    const { subjects, trainer, seen, steps, sender } = this.#options;
    let step: number | undefined;
    const mode = { subjects, trainer, learningRate, encoding, seen, step: () => step };
    return this.#update(
      entriesOf(grads, deadline.what),
      deadline,
      (info, given) => gradientUpdates(info, given, mode),
      (sources) => {
        const shards = sources.map(({ shard }) => shard);
        return steps.gradients({ shards, endStep }, deadline, (place) => {
          step = place.step;
          const { countsLate } = place;
          return sender.send(sources, { deadline, stored: options.ack === "stored", countsLate });
        });
      },
    );
  }

  /** Computes value = alpha · value + beta · tensor; see `Client.pushFull`. */
  async pushFull(
    name: string,
    given: TensorLike,
    mix: Mix,
    deadline: Deadline,
    mode: UpdateMode,
  ): Promise<void> {
    const push = mixPush(mix, mode.encoding);
    await this.#send([[name, given]], deadline, mode, (info, value) => {
      const { data } = fitTensor(info, value);
      checkFiniteElements(info, data, mode.encoding);
      return pushUpdates(this.#options, info, data, push);
    });
  }

  /** Does the same as {@link pushFull} for some elements; see `Client.pushAsPart`. */
  async pushAsPart(
    part: {
      readonly name: string;
      readonly tensor: TensorLike;
      readonly indices: readonly IndexList[];
    },
    mix: Mix,
    deadline: Deadline,
    mode: UpdateMode,
  ): Promise<void> {
    const { encoding } = mode;
    const push = mixPush(mix, encoding);
    const { name, tensor, indices } = part;
    await this.#send([[name, tensor]], deadline, mode, (info, given) => {
      const { shape, elements, blocks } = planPart(info, indices);
      const data = fitData(info, given, shape, elements);
      checkFiniteElements(info, data, encoding);
      const bytesMax = this.#options.payloadBytesMax() - HEADER_BYTES_MAX;
      const elementBytes = encodedBytes(info.dtype, encoding, 1);
      const slices = blocks.flatMap((block) => slicePart(block, elementBytes, bytesMax));
      return partUpdates(this.#options, info, slices, data, push);
    });
  }

  /** Overwrites parameters; see `Client.setParams`. */
  async setParams(tensors: TensorRecord, deadline: Deadline, mode: UpdateMode): Promise<void> {
    await this.#send(entriesOf(tensors, deadline.what), deadline, mode, (info, given) => {
      const tensor = fitTensor(info, given);
      checkFiniteElements(info, tensor.data);
      return setUpdates(this.#options, info, tensor);
    });
  }

  /** Writes a remark into the journal; see `Client.note`. The entries are copied. */
  async note(entries: NoteEntries, deadline: Deadline, ack?: Ack): Promise<void> {
    const { sender, subjects, trainer } = this.#options;
    const note = checkNote({ ...entries });
    const source: UpdateSource = {
      subject: subjects.note(NOTE_SHARD, trainer),
      shard: NOTE_SHARD,
      topic: { kind: "note" },
      blocks: 1,
      dataBytes: NOTE_BYTES_MAX,
      namesVersion: false,
      draft: (header) => encodeNote({ verb: "note", ...header, note }),
    };
    await sender.send([source], { deadline, stored: ack === "stored" });
  }

  #send(
    entries: Entries<TensorLike>,
    deadline: Deadline,
    { ack }: UpdateMode,
    toUpdates: (info: ParameterInfo, given: TensorLike) => UpdateSource[],
  ): Promise<unknown> {
    const options = { deadline, stored: ack === "stored" };
    return this.#update(entries, deadline, toUpdates, (sources) =>
      this.#options.sender.send(sources, options),
    );
  }

  async #update<Given, Result>(
    entries: Entries<Given>,
    deadline: Deadline,
    toUpdates: (info: ParameterInfo, given: Given) => UpdateSource[],
    send: (sources: readonly UpdateSource[]) => Promise<Result>,
  ): Promise<Result> {
    const { parameters } = this.#options;
    const names = entries.map(([name]) => name);
    const infos = await parameters.require(names, deadline);
    try {
      const sources: UpdateSource[] = [];
      infos.forEach((info, i) => {
        const [, given] = entries[i] as Entries<Given>[number];
        if (info.config.static) throw isStatic(info.name);
        for (const source of toUpdates(info, given)) sources.push(source);
      });
      return await send(inBatches(sources, this.#options));
    } catch (caught) {
      const error = ensureError(caught);
      // The parameter was initialized again after it was looked up: the next call looks it up again.
      if (reactionTo(error.code) === "look-up") for (const name of names) parameters.forget(name);
      throw error;
    }
  }
}

function mixPush(mix: Mix, encoding: Encoding | undefined): Push {
  const alpha = checkFinite(mix.alpha, "alpha");
  const beta = checkFinite(mix.beta, "beta");
  return {
    ...(encoding === undefined ? {} : { encoding }),
    operation: () => ({ op: "mix", alpha, beta }),
  };
}

function isStatic(parameter: string): PserverError {
  return new PserverError(
    "STATIC",
    `${quoteName(parameter)} keeps its first values: its config says static`,
    { parameter },
  );
}
