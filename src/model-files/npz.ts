import { DTYPES } from "../protocol/dtypes.ts";
import { quoteName } from "../protocol/names.ts";
import { badFile } from "./bad-file.ts";
import { encodeMetadata, parseMetadata } from "./metadata.ts";
import type { ModelFile } from "./model-file.ts";
import { encodeNpyHeader, NPY_PREFIX_BYTES, npyTextRange, parseNpyText } from "./npy-header.ts";
import type { IncomingModel, OutgoingModel, TensorHeader, TensorSource } from "./tensor.ts";
import { badName, dataBytes, elementsOf } from "./tensor.ts";
import { unpack, unpackHead } from "./zip-data.ts";
import type { ZipEntry } from "./zip-reader.ts";
import { readZip } from "./zip-reader.ts";
import { writeZip } from "./zip-writer.ts";

const SUFFIX = ".npy";

/**
 * The bytes of an npz file, as numpy's `savez` lays it out: a zip archive with a stored member
 * `<name>.npy` per tensor. The format has no place for metadata; it becomes the archive's comment, a
 * JSON object, which numpy does not look at.
 * @throws BAD_NAME for a name with NUL, where zip programs end names; what `model.chunks` throws.
 */
export async function* writeNpz(model: OutgoingModel): AsyncGenerator<Uint8Array, void, undefined> {
  const members = model.tensors.map((tensor) => {
    if (tensor.name.includes("\0")) throw badName(tensor.name, "no NUL character");
    const head = encodeNpyHeader(tensor.dtype, tensor.shape);
    return {
      name: tensor.name + SUFFIX,
      bytes: head.byteLength + dataBytes(tensor),
      chunks: () => startingWith(head, model.chunks(tensor)),
    };
  });
  yield* writeZip(members, encodeMetadata(model.metadata));
}

/**
 * Reads the table of contents and the array headers of an npz file, stored or deflated. Checksums
 * are checked as the bytes are read. A comment that is not ours is no metadata.
 * @throws BAD_FILE, BAD_DTYPE, IO.
 */
export async function readNpz(file: ModelFile): Promise<IncomingModel> {
  const { entries, comment } = await readZip(file);
  const tensors: TensorSource[] = [];
  for (const entry of entries) tensors.push(await readMember(file, entry));
  return { tensors, metadata: parseMetadata(comment) ?? {} };
}

async function readMember(file: ModelFile, entry: ZipEntry): Promise<TensorSource> {
  const what = `member ${quoteName(entry.name)}`;
  const name = entry.name.slice(0, -SUFFIX.length);
  if (!entry.name.endsWith(SUFFIX) || name === "") {
    throw badFile(file.path, "members", `names ending in ${SUFFIX}`, what);
  }
  const range = npyTextRange(file.path, what, await unpackHead(file, entry, NPY_PREFIX_BYTES));
  const head = await unpackHead(file, entry, range.end);
  if (head.byteLength < range.end) {
    throw badFile(file.path, `header of ${what}`, `${range.end} bytes`, head.byteLength);
  }
  const text = Buffer.from(head.subarray(range.begin)).toString("latin1");
  const { dtype, shape } = parseNpyText(file.path, what, text);
  const header: TensorHeader = { name, dtype, shape };
  const expected = range.end + (elementsOf(shape) ?? 0) * DTYPES[dtype].bytes;
  if (entry.bytes !== expected) {
    throw badFile(file.path, `bytes of ${what}`, expected, entry.bytes);
  }
  return { header, chunks: () => unpack(file, entry, range.end) };
}

async function* startingWith(
  head: Uint8Array,
  chunks: AsyncIterable<Uint8Array>,
): AsyncGenerator<Uint8Array, void, undefined> {
  yield head;
  yield* chunks;
}
