import { LogSubjects } from "../../actors/fold/log-subjects.ts";
import { readable, readRecordMessage } from "../../actors/fold/read-record.ts";
import type { Shard } from "../../actors/fold/shard.ts";
import {
  asMap,
  BATCH_ENTRIES_MAX,
  type BatchEntry,
  blockRows,
  encodedBytes,
  encodeMessage,
  type Fields,
  type JobSubjects,
  listField,
  type Message,
  parseBatch,
  parseHead,
  parseTrainerRecord,
  partElements,
} from "../../protocol/index.ts";
import type { LogSubject } from "../../protocol/subjects.ts";
import type { TimedRecord } from "../source.ts";
import type { ChangeCounts, FoldChanges } from "./fold-changes.ts";
import { normOf, type RecordElements, scaleElements } from "./scale-elements.ts";

/** Subject of a record that may hold gradients. */
type UpdateSubject = Extract<LogSubject, { by: "trainer" | "batch" }>;

/** Changes records of one shard before they are folded. */
export class RecordEditor {
  readonly #changes: FoldChanges;
  readonly #subjects: LogSubjects;
  readonly #withoutTrainers: ReadonlySet<string>;
  readonly #withoutSeqs: ReadonlySet<number>;
  #leftOut = 0;
  #changed = 0;

  /** `generation`: of the records that it gets. */
  constructor(changes: FoldChanges, subjects: JobSubjects, shard: number, generation: number) {
    this.#changes = changes;
    this.#subjects = new LogSubjects(subjects);
    this.#withoutTrainers = new Set(changes.withoutTrainers);
    const own = changes.withoutRecords.filter(
      (record) => record.shard === shard && record.generation === generation,
    );
    this.#withoutSeqs = new Set(own.map(({ seq }) => seq));
  }

  get counts(): ChangeCounts {
    return { leftOut: this.#leftOut, changed: this.#changed };
  }

  /** The record to fold instead of one; undefined to leave it out. `shard`: as it is before. */
  edit(record: TimedRecord, shard: Shard): TimedRecord | undefined {
    const { parsed: subject } = this.#subjects.read(record.subject);
    if (subject?.by !== "trainer" && subject?.by !== "batch") return record;
    const message = readRecordMessage(record.payload);
    if (message === undefined) return record;
    if (this.#isLeftOut(record, subject, message)) {
      this.#leftOut += 1;
      return undefined;
    }
    const payload = readable(() => this.#editGradients(subject, message, shard));
    if (payload === undefined) return record;
    this.#changed += 1;
    return { ...record, payload };
  }

  #isLeftOut({ seq }: TimedRecord, subject: UpdateSubject, message: Message): boolean {
    if (this.#withoutSeqs.has(seq)) return true;
    return this.#withoutTrainers.has(subject.trainer) && !initializes(subject, message);
  }

  /** The record with its gradients changed; undefined if none of them is. */
  #editGradients(
    subject: UpdateSubject,
    { fields, data }: Message,
    shard: Shard,
  ): Uint8Array | undefined {
    // A copy even of a Buffer, whose own `slice` shares memory.
    const copy: Message = { fields, data: new Uint8Array(data) };
    const edited =
      subject.by === "batch" ? this.#editBatch(copy, shard) : this.#editPush(subject, copy, shard);
    return edited && encodeMessage(edited, copy.data);
  }

  #editPush(
    { verb, parameter, index }: Extract<LogSubject, { by: "trainer" }>,
    message: Message,
    shard: Shard,
  ): Fields | undefined {
    const { fields, data } = message;
    if (verb !== "push") return undefined;
    const record = parseTrainerRecord(verb, parseHead(fields), message);
    const changed = this.#editEntries(fields, [{ parameter, index, record, data }], shard);
    return changed && { ...fields, ...changed };
  }

  #editBatch(message: Message, shard: Shard): Fields | undefined {
    const { fields } = message;
    const entries = parseBatch(parseHead(fields), message, BATCH_ENTRIES_MAX);
    let isChanged = false;
    const groups = listField(fields, "groups", BATCH_ENTRIES_MAX).map((value) => {
      const group = asMap(value, "group");
      const own = entries.filter(({ parameter }) => parameter === group["parameter"]);
      const changed = this.#editEntries(group, own, shard);
      isChanged ||= changed !== undefined;
      return { ...group, ...changed };
    });
    return isChanged ? { ...fields, groups } : undefined;
  }

  /** What changes in the fields that block updates of one parameter share; scales their elements. */
  #editEntries(fields: Fields, entries: readonly BatchEntry[], shard: Shard): Fields | undefined {
    if (fields["op"] !== "grad") return undefined;
    const [first] = entries;
    const block = first && shard.block(first.parameter, first.index);
    if (block === undefined) return undefined;
    const { learningRate } = this.#changes;
    // A parameter without an optimizer takes no learning rate.
    const takesRate = block.config.optimizer.name !== "none";
    const rate = learningRate !== undefined && takesRate ? { lr: learningRate } : undefined;
    const norm = this.#clip(fields, entries, shard);
    return rate === undefined && norm === undefined ? undefined : { ...rate, ...norm };
  }

  /** Scales the elements if their norm is too large; what changes in the fields then. */
  #clip(fields: Fields, entries: readonly BatchEntry[], shard: Shard): Fields | undefined {
    const { clipNorm } = this.#changes;
    if (clipNorm === undefined) return undefined;
    const elements = entries.flatMap((entry) => elementsOf(entry, shard) ?? []);
    const told = fields["norm"];
    const norm = typeof told === "number" ? told : Math.hypot(...elements.map(normOf));
    if (!(norm > clipNorm)) return undefined;
    const factor = clipNorm / norm;
    for (const each of elements) scaleElements(each, factor);
    return typeof told === "number" ? { norm: norm * factor } : {};
  }
}

/** Whether a record creates blocks, without which later ones mean nothing. */
function initializes(subject: UpdateSubject, { fields }: Message): boolean {
  if (subject.by === "trainer") return subject.verb === "init";
  const groups = readable(() => listField(fields, "groups", BATCH_ENTRIES_MAX)) ?? [];
  return groups.some((group) => (group as Fields | null)?.["verb"] === "init");
}

/** The elements of a block update, behind the index of a part; undefined if its block is not there. */
function elementsOf(
  { parameter, index, record, data }: BatchEntry,
  shard: Shard,
): RecordElements | undefined {
  const block = shard.block(parameter, index);
  if (block === undefined || record.verb !== "push") return undefined;
  const { dtype, encoding, part } = record;
  const count = part === undefined ? block.count : partElements(part, blockRows(block));
  const bytes = data.subarray(data.length - encodedBytes(dtype, encoding, count));
  return { dtype, encoding, bytes };
}
