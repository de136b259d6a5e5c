import { DTYPES } from "../protocol/dtypes.ts";
import { quoteName } from "../protocol/names.ts";
import { badFile } from "./bad-file.ts";
import { checkNamesApart, memberName, trueNameOf } from "./member-name.ts";
import { encodeMetadata, parseMetadata } from "./metadata.ts";
import type { ModelFile } from "./model-file.ts";
import { encodeNpyHeader, NPY_PREFIX_BYTES, npyTextRange, parseNpyText } from "./npy-header.ts";
import {
  DESCRIPTION_BYTES_MAX,
  dataBytes,
  elementsOf,
  type IncomingModel,
  type OutgoingModel,
  type TensorHeader,
  type TensorSource,
} from "./tensor.ts";
import { unpack, unpackHead } from "./zip-data.ts";
import { readZip, type ZipEntry } from "./zip-reader.ts";
import { writeZip } from "./zip-writer.ts";

const SUFFIX = ".npy";

/** Prefix of the comment of a member with an escaped name; the true name follows as JSON. */
const NAME_COMMENT = "PSERVER.name=";

/**
 * The bytes of an npz file, as numpy's `savez` lays it out: a zip archive with a stored member
 * `<name>.npy` per tensor. The format has no place for metadata; it becomes the archive's comment, a
 * JSON object, which numpy does not look at. A name that would unpack to elsewhere is escaped; the
 * member's comment keeps it.
 * @throws what `model.chunks` throws.
 */
export async function* writeNpz(model: OutgoingModel): AsyncGenerator<Uint8Array, void, undefined> {
  const members = model.tensors.map((tensor) => {
    const { name, trueName } = memberName(tensor.name);
    const head = encodeNpyHeader(tensor.dtype, tensor.shape);
    return {
      name: name + SUFFIX,
      ...(trueName === undefined ? {} : { comment: NAME_COMMENT + JSON.stringify(trueName) }),
      bytes: head.byteLength + dataBytes(tensor),
      chunks: async function* () {
        yield head;
        yield* model.chunks(tensor);
      },
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
  let headerBytes = 0;
  for (const entry of entries) {
    const { tensor, head } = await readMember(file, entry);
    headerBytes += head;
    if (headerBytes > DESCRIPTION_BYTES_MAX) {
      const expected = `at most ${DESCRIPTION_BYTES_MAX}`;
      throw badFile(file.path, "bytes of the arrays' headers", expected, headerBytes);
    }
    tensors.push(tensor);
  }
  checkNamesApart(
    file.path,
    tensors.map(({ header }) => header),
  );
  return { tensors, metadata: parseMetadata(comment) ?? {} };
}

/** A tensor, and the bytes of its `.npy` header. */
async function readMember(
  file: ModelFile,
  entry: ZipEntry,
): Promise<{ readonly tensor: TensorSource; readonly head: number }> {
  const what = `member ${quoteName(entry.name)}`;
  const member = entry.name.slice(0, -SUFFIX.length);
  if (!entry.name.endsWith(SUFFIX) || member === "") {
    throw badFile(file.path, "members", `names ending in ${SUFFIX}`, what);
  }
  const isNamed = entry.comment.startsWith(NAME_COMMENT);
  const kept = isNamed ? entry.comment.slice(NAME_COMMENT.length) : undefined;
  const name = trueNameOf(file.path, member, kept);
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
  return { tensor: { header, chunks: () => unpack(file, entry, range.end) }, head: range.end };
}
