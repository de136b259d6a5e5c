import { DTYPES } from "../protocol/dtypes.ts";
import { badFile } from "./bad-file.ts";
import { dataBytes, type OutgoingModel, type TensorHeader } from "./tensor.ts";

/** Bytes before the elements of a PaddlePaddle parameter file. */
export const PADDLE_HEADER_BYTES = 16;

const VERSION = 0;

/**
 * The bytes of a parameter file: u32 version, u32 bytes of an element, u64 elements, then the
 * elements.
 */
export async function* writeParameterFile(
  model: OutgoingModel,
  tensor: TensorHeader,
): AsyncGenerator<Uint8Array, void, undefined> {
  const valueBytes = DTYPES[tensor.dtype].bytes;
  const view = new DataView(new ArrayBuffer(PADDLE_HEADER_BYTES));
  view.setUint32(0, VERSION, true);
  view.setUint32(4, valueBytes, true);
  view.setBigUint64(8, BigInt(dataBytes(tensor) / valueBytes), true);
  yield new Uint8Array(view.buffer);
  yield* model.chunks(tensor);
}

/** Header of a parameter file; the elements fill the rest of the file. */
export interface PaddleHeader {
  readonly valueBytes: number;
  readonly elements: number;
}

/**
 * Reads the header of a parameter file of `fileBytes` bytes.
 * @throws BAD_FILE unless the version is 0, elements take 4 or 8 bytes, and they fill the file.
 */
export function decodePaddleHeader(
  path: string,
  what: string,
  header: Uint8Array,
  fileBytes: number,
): PaddleHeader {
  const view = new DataView(header.buffer, header.byteOffset, header.byteLength);
  const version = view.getUint32(0, true);
  const valueBytes = view.getUint32(4, true);
  const elements = Number(view.getBigUint64(8, true));
  if (version !== VERSION) throw badFile(path, `version of ${what}`, VERSION, version);
  if (valueBytes !== 4 && valueBytes !== 8) {
    throw badFile(path, `bytes of an element of ${what}`, "4 or 8", valueBytes);
  }
  const expected = PADDLE_HEADER_BYTES + elements * valueBytes;
  if (fileBytes !== expected) throw badFile(path, `bytes of ${what}`, expected, fileBytes);
  return { valueBytes, elements };
}
