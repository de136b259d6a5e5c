import { allocateData, bytesOf, dtypeOf, type TensorData } from "../../protocol/dtypes.ts";
import { decodeElements } from "../../protocol/encoding/elements.ts";
import type { Encoding } from "../../protocol/encoding/encodings.ts";
import type { BlockPart } from "../parts/part-plan.ts";
import { scatterPart } from "../parts/part-values.ts";

/**
 * Writes the elements of a message, encoded or as their type has them, to `count` consecutive places of an
 * array from `start` on. Only float32 elements can be encoded.
 */
export function writeElements(
  data: TensorData,
  start: number,
  count: number,
  encoding: Encoding | undefined,
  message: Uint8Array,
): void {
  if (encoding === undefined) bytesOf(data).set(message, start * data.BYTES_PER_ELEMENT);
  else if (data instanceof Float32Array) {
    decodeElements(encoding, message, data.subarray(start, start + count));
  }
}

/** Writes the elements of a part of a block, as {@link writeElements} does, to the places that its plan gives. */
export function writePart(
  data: TensorData,
  part: BlockPart,
  encoding: Encoding | undefined,
  message: Uint8Array,
): void {
  const elements = part.messageRows * part.messageRowElements;
  if (part.tensorStart !== undefined) {
    writeElements(data, part.tensorStart, elements, encoding, message);
    return;
  }
  const aligned = allocateData(dtypeOf(data), elements);
  writeElements(aligned, 0, elements, encoding, message);
  scatterPart(part, aligned, data);
}
