import { sealMessage } from "../protocol/codec.ts";
import { bytesOf, type TensorData } from "../protocol/dtypes.ts";
import { encodeElements } from "../protocol/encoding/elements.ts";
import { type Encoding, encodedBytes } from "../protocol/encoding/encodings.ts";
import { type BlockPlace, blockPlaces } from "../protocol/layout.ts";
import type { ParameterInfo } from "../protocol/lifecycle-messages.ts";
import { type PartIndex, partCounts, partIndexBytes, writePartIndex } from "../protocol/parts.ts";
import {
  draftRecord,
  type PushOperation,
  type RecordHead,
  type TrainerRecord,
} from "../protocol/records.ts";
import type { JobSubjects } from "../protocol/subjects.ts";
import type { Tensor } from "../protocol/tensor.ts";
import type { Piece } from "./batch.ts";
import { gatherPart, type PartSlice } from "./part-values.ts";

/** Who sends, and what the records of a tensor do. */
interface Sender {
  readonly subjects: JobSubjects;
  readonly trainer: string;
}

/** What a push does. */
export interface Push {
  /** L2 norm of all elements that the call sends of the parameter, as encoded, where it is needed. */
  readonly norm?: number;
  readonly encoding?: Encoding;
  /** What it does to the block with this index; asked when the message is made. */
  readonly operation: (block: number) => PushOperation;
}

/** Elements that go to one block in one message. */
interface Load {
  readonly place: BlockPlace;
  readonly index?: PartIndex | undefined;
  readonly encoding?: Encoding | undefined;
  readonly elements: number;
  /** Writes the elements as they travel; called when the message is made: what waits is not copied. */
  readonly write: (target: Uint8Array) => void;
}

/** Records that initialize every block of a parameter. */
export function initPieces(sender: Sender, info: ParameterInfo, tensor: Tensor): Piece[] {
  const { epoch, dtype, shape, config } = info;
  return wholeBlocks(info, tensor.data).map((load) => {
    const { start, count } = load.place;
    const body = { verb: "init" as const, epoch, dtype, shape, start, count, config };
    return toPiece(sender, info, load, "init", (head) => ({ ...head, ...body }));
  });
}

/** Records that overwrite every block of a parameter. */
export function setPieces(sender: Sender, info: ParameterInfo, tensor: Tensor): Piece[] {
  const { epoch, dtype } = info;
  return wholeBlocks(info, tensor.data).map((load) =>
    toPiece(sender, info, load, "set", (head) => ({ verb: "set", ...head, epoch, dtype })),
  );
}

/** Records that update every block of a parameter. */
export function pushPieces(
  sender: Sender,
  info: ParameterInfo,
  data: TensorData,
  push: Push,
): Piece[] {
  return wholeBlocks(info, data, push.encoding).map((load) =>
    toPushPiece(sender, info, load, push),
  );
}

/** Records that update parts of blocks with the elements that `data` has for them. */
export function partPieces(
  sender: Sender,
  info: ParameterInfo,
  slices: readonly PartSlice[],
  data: TensorData,
  push: Push,
): Piece[] {
  return slices.map((slice) => {
    const { index, elements, part } = slice;
    const write = (target: Uint8Array): void =>
      writeElements(target, gatherPart(slice, data), push.encoding);
    return toPushPiece(sender, info, { place: part.place, index, elements, write }, push);
  });
}

function wholeBlocks({ layout }: ParameterInfo, data: TensorData, encoding?: Encoding): Load[] {
  return blockPlaces(layout).map((place) => {
    const write = (target: Uint8Array): void =>
      writeElements(target, data.subarray(place.start, place.start + place.count), encoding);
    return { place, elements: place.count, write };
  });
}

function toPushPiece(
  sender: Sender,
  info: ParameterInfo,
  load: Load,
  { norm, encoding, operation }: Push,
): Piece {
  const { epoch, dtype } = info;
  const part = load.index && partCounts(load.index);
  const toRecord = ({ session, n, done, reply }: RecordHead): TrainerRecord => ({
    verb: "push",
    session,
    n,
    done,
    reply,
    epoch,
    dtype,
    norm,
    encoding,
    operation: operation(load.place.index),
    part,
  });
  return toPiece(sender, info, { ...load, encoding }, "push", toRecord);
}

function toPiece(
  { subjects, trainer }: Sender,
  { name, dtype }: ParameterInfo,
  { place, index, elements, write, encoding }: Load,
  verb: TrainerRecord["verb"],
  toRecord: (head: RecordHead) => TrainerRecord,
): Piece {
  const indexBytes = index === undefined ? 0 : partIndexBytes(partCounts(index));
  const dataBytes = indexBytes + encodedBytes(dtype, encoding, elements);
  return {
    subject: subjects.log(place.shard, trainer, verb, name, place.index),
    shard: place.shard,
    topic: { parameter: name, index: place.index },
    dataBytes,
    draft: (head, allocate) => {
      const draft = draftRecord(toRecord(head), dataBytes, allocate);
      if (index !== undefined) writePartIndex(draft.data, index);
      write(draft.data.subarray(indexBytes));
      return sealMessage(draft);
    },
  };
}

function writeElements(target: Uint8Array, values: TensorData, encoding?: Encoding): void {
  if (encoding === undefined) target.set(bytesOf(values));
  else if (values instanceof Float32Array) encodeElements(encoding, values, target);
}
