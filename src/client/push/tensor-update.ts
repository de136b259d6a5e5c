import { type Allocate, sealMessage } from "../../protocol/codec.ts";
import {
  bytesOf,
  DTYPES,
  type Encoding,
  encodedBytes,
  isGrouped,
  type TensorData,
} from "../../protocol/dtypes.ts";
import { encodeElements } from "../../protocol/encoding/encoding.ts";
import { splitGroups } from "../../protocol/encoding/grouped.ts";
import type { BlockPlace } from "../../protocol/layout.ts";
import type { Contribution } from "../../protocol/messages/contributions.ts";
import type { ParameterInfo } from "../../protocol/messages/lifecycle-messages.ts";
import {
  type PartIndex,
  partCounts,
  partIndexBytes,
  writePartIndex,
} from "../../protocol/messages/parts.ts";
import {
  draftRecord,
  type PushOperation,
  type RecordHeader,
  type TrainerRecord,
} from "../../protocol/messages/records.ts";
import type { JobSubjects, TrainerVerb } from "../../protocol/subjects.ts";
import type { Topic, UpdateSource } from "../io/update-sender.ts";
import { gatherPart, type PartSlice } from "../part-plan.ts";
import type { RoundingErrors } from "./rounding-errors.ts";

/** What all updates of a call ask for. */
export interface UpdateKind {
  readonly verb: TrainerVerb;
  /** Of an `init`: the updates by gradients that some elements have gone through elsewhere; absent for none. */
  readonly updates?: (parameter: string, start: number, count: number) => number;
  readonly encoding?: Encoding | undefined;
  /** Takes what rounding leaves out of gradients in a grouped encoding; undefined if that is lost. */
  readonly errors?: RoundingErrors | undefined;
  /** What a push does with its elements, without `step` and `seen`. */
  readonly operation?: PushOperation | undefined;
  /** Returns the step that gradients belong to, read when a message is made; absent for other updates. */
  readonly step?: (() => number | undefined) | undefined;
  /**
   * The contribution that the updates are, without its parts: they go in records of contributions. Read when a message is
   * made.
   */
  readonly contribution?: Omit<Contribution, "part" | "parts"> | undefined;
}

/** The trainer that sends the records, and its subjects. */
export interface Sender {
  readonly subjects: JobSubjects;
  readonly trainer: string;
}

/** Elements for one block: the whole block, or a slice of a part. */
export interface BlockElements {
  readonly info: ParameterInfo;
  readonly place: BlockPlace;
  /** The caller's array: of the whole parameter, or of the part. Waiting updates hold no copy. */
  readonly data: TensorData;
  /** Set for some elements of the block. */
  readonly slice?: PartSlice | undefined;
  /** L2 norm, as encoded, of all elements that the call sends of the parameter; undefined if it is not needed. */
  readonly norm: number | undefined;
  /** Version of the block from which a gradient was made; 0 if none is known. */
  readonly seen: number;
}

/** Returns the operation of a push in its message; undefined for another verb. `seen`: 0 for none. */
export function operationOf(
  { operation, step }: UpdateKind,
  seen: number,
): PushOperation | undefined {
  if (operation?.op !== "grad") return operation;
  const { op, lr } = operation;
  const present = step?.();
  // All gradients of one step are made from the same version, so they name none.
  if (present !== undefined) return { op, lr, step: present };
  return seen === 0 ? { op, lr } : { op, lr, seen };
}

/** Returns the elements for a block, in the order of the message. */
function elementsFor({ place, data, slice }: BlockElements): TensorData {
  if (slice !== undefined) return gatherPart(slice, data);
  const { start, count } = place;
  return start === 0 && count === data.length ? data : data.subarray(start, start + count);
}

/** An update of one block that has a record of its own. */
export class TensorUpdate implements UpdateSource {
  readonly shard: number;
  readonly blocks = 1;
  readonly dataBytes: number;
  readonly #sender: Sender;
  readonly #kind: UpdateKind;
  readonly #elements: BlockElements;
  /** What the first message had, if its elements were encoded with their errors: these count once. */
  #encoded: Uint8Array | undefined;

  constructor(sender: Sender, kind: UpdateKind, elements: BlockElements) {
    const { info, place, slice } = elements;
    this.#sender = sender;
    this.#kind = kind;
    this.#elements = elements;
    this.shard = place.shard;
    const bytes = encodedBytes(info.dtype, kind.encoding, slice?.elements ?? place.count);
    this.dataBytes =
      bytes + (this.#index === undefined ? 0 : partIndexBytes(partCounts(this.#index)));
  }

  get subject(): string {
    const { subjects, trainer } = this.#sender;
    const { info, place } = this.#elements;
    return subjects.log(this.shard, trainer, this.#kind.verb, info.name, place.index);
  }

  get topic(): Topic {
    const { info, place } = this.#elements;
    return { kind: "blocks", blocks: [{ parameter: info.name, index: place.index }] };
  }

  /** Read when the update is sent, because the answer depends on its step, which is not known before. */
  get namesVersion(): boolean {
    return this.#elements.seen > 0 && this.#kind.step?.() === undefined;
  }

  draft(header: RecordHeader, namesVersion: boolean, allocate?: Allocate): Uint8Array {
    const index = this.#index;
    const draft = draftRecord(this.#record(header, namesVersion), this.dataBytes, allocate);
    const indexBytes = index === undefined ? 0 : writePartIndex(draft.data, index);
    this.#write(draft.data.subarray(indexBytes));
    return sealMessage(draft);
  }

  #write(target: Uint8Array): void {
    const { encoding, errors } = this.#kind;
    if (this.#encoded !== undefined) {
      target.set(this.#encoded);
      return;
    }
    const elements = elementsFor(this.#elements);
    if (errors === undefined || !isGrouped(encoding) || !(elements instanceof Float32Array)) {
      writeElements(encoding, elements, target);
      return;
    }
    const { info, place, slice } = this.#elements;
    const { start, count } = place;
    const own = { info, start, count, rows: slice?.index?.rows, elements: elements.length };
    errors.encode(encoding, [own], elements, splitGroups(elements.length, target));
    this.#encoded = target.slice();
  }

  get #index(): PartIndex | undefined {
    return this.#elements.slice?.index;
  }

  #record(header: RecordHeader, namesVersion: boolean): TrainerRecord {
    const { info, place, norm, seen } = this.#elements;
    const { epoch, dtype, shape, config } = info;
    const { session, n, done, reply } = header;
    const { verb, encoding } = this.#kind;
    if (verb === "set") return { verb, session, n, done, reply, epoch, dtype };
    if (verb === "init") {
      const { start, count } = place;
      const init = { verb, session, n, done, reply, epoch, dtype, shape, start, count, config };
      const updates = this.#kind.updates?.(info.name, start, count);
      return updates === undefined ? init : { ...init, updates };
    }
    const operation = operationOf(this.#kind, namesVersion ? seen : 0) ?? { op: "grad" };
    const part = this.#index && partCounts(this.#index);
    return { verb, session, n, done, reply, epoch, dtype, norm, encoding, operation, part };
  }
}

/** Writes the elements of one update to their place in a message, encoded if they are to be. */
export function writeElements(
  encoding: Encoding | undefined,
  elements: TensorData,
  target: Uint8Array,
): void {
  if (encoding === undefined) target.set(bytesOf(elements));
  else if (elements instanceof Float32Array) encodeElements(encoding, elements, target);
}

/** Whether elements of a parameter are floats. */
export function hasFloats({ dtype }: Pick<ParameterInfo, "dtype">): boolean {
  return DTYPES[dtype].float;
}
