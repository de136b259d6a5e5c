import { DTYPES, type Dtype } from "../protocol/dtypes.ts";
import { PserverError } from "../protocol/errors.ts";
import { encodeMetadata } from "./metadata.ts";
import { badName, DESCRIPTION_BYTES_MAX, dataBytes, type OutgoingModel } from "./tensor.ts";

/** The header's key for metadata, which no tensor can have. */
export const METADATA_KEY = "__metadata__";

/** The format's names of the element types. */
export const SAFETENSORS_DTYPES = {
  int32: "I32",
  uint32: "U32",
  int64: "I64",
  uint64: "U64",
  float32: "F32",
  float64: "F64",
} as const satisfies Record<Dtype, string>;

const ALIGNMENT = 8;

/**
 * The bytes of a safetensors file. Tensors of 8-byte elements come first, so that with the padded
 * header every element is aligned in the file.
 * @throws BAD_NAME for a tensor called `__metadata__`; TOO_LARGE for a header above 100 MB; what
 * `model.chunks` throws.
 */
export async function* writeSafetensors(
  model: OutgoingModel,
): AsyncGenerator<Uint8Array, void, undefined> {
  const tensors = [...model.tensors].sort((a, b) => DTYPES[b.dtype].bytes - DTYPES[a.dtype].bytes);
  // The JSON is built from strings: an object would lose a parameter called __proto__.
  const fields: string[] = [];
  const metadata = encodeMetadata(model.metadata);
  if (metadata !== "") fields.push(`"${METADATA_KEY}":${metadata}`);
  let offset = 0;
  for (const tensor of tensors) {
    if (tensor.name === METADATA_KEY)
      throw badName(tensor.name, "any name but the format's own key");
    const end = offset + dataBytes(tensor);
    const dtype = SAFETENSORS_DTYPES[tensor.dtype];
    const entry = { dtype, shape: tensor.shape, data_offsets: [offset, end] };
    fields.push(`${JSON.stringify(tensor.name)}:${JSON.stringify(entry)}`);
    offset = end;
  }
  const text = new TextEncoder().encode(`{${fields.join(",")}}`);
  const headerBytes = Math.ceil(text.byteLength / ALIGNMENT) * ALIGNMENT;
  if (headerBytes > DESCRIPTION_BYTES_MAX) {
    throw new PserverError(
      "TOO_LARGE",
      `safetensors header: expected at most ${DESCRIPTION_BYTES_MAX} bytes; received ${headerBytes}`,
      { expected: DESCRIPTION_BYTES_MAX, received: headerBytes },
    );
  }
  const head = new Uint8Array(8 + headerBytes).fill(0x20);
  new DataView(head.buffer).setBigUint64(0, BigInt(headerBytes), true);
  head.set(text, 8);
  yield head;
  for (const tensor of tensors) yield* model.chunks(tensor);
}
