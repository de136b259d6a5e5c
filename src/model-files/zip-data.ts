import { pipeline, Readable } from "node:stream";
import { crc32, createInflateRaw } from "node:zlib";
import { PserverError } from "../protocol/errors.ts";
import { quoteName } from "../protocol/names.ts";
import { badFile } from "./bad-file.ts";
import type { ModelFile } from "./model-file.ts";
import type { ZipEntry } from "./zip-reader.ts";

/**
 * The unpacked bytes of a member from `skip` on, in chunks that belong to the receiver. Memory stays
 * bounded whatever the archive claims; the checksum is known, and checked, after the last byte.
 * @throws BAD_FILE if the length or checksum is not the one of the directory; IO; CLOSED.
 */
export async function* unpack(
  file: ModelFile,
  entry: ZipEntry,
  skip: number,
): AsyncGenerator<Uint8Array, void, undefined> {
  const what = quoteName(entry.name);
  let received = 0;
  let crc = 0;
  for await (const chunk of unchecked(file, entry)) {
    const before = received;
    received += chunk.byteLength;
    if (received > entry.bytes) break;
    crc = crc32(chunk, crc);
    const kept = chunk.subarray(Math.max(0, skip - before));
    if (kept.byteLength > 0) yield kept;
  }
  if (received !== entry.bytes) {
    throw badFile(file.path, `unpacked bytes of ${what}`, entry.bytes, received);
  }
  if (crc !== entry.crc) throw badFile(file.path, `checksum of ${what}`, entry.crc, crc);
}

/**
 * The first `length` unpacked bytes of a member, or all if it has fewer. No checksum is checked.
 * @throws BAD_FILE if they cannot be unpacked; IO; CLOSED.
 */
export async function unpackHead(
  file: ModelFile,
  entry: ZipEntry,
  length: number,
): Promise<Uint8Array> {
  const wanted = Math.min(length, entry.bytes);
  if (!entry.deflated) return await file.read(entry.packedAt, wanted, quoteName(entry.name));
  const head = new Uint8Array(wanted);
  let filled = 0;
  for await (const chunk of unchecked(file, entry)) {
    const part = chunk.subarray(0, wanted - filled);
    head.set(part, filled);
    filled += part.byteLength;
    if (filled === wanted) return head;
  }
  throw badFile(file.path, `unpacked bytes of ${quoteName(entry.name)}`, entry.bytes, filled);
}

async function* unchecked(
  file: ModelFile,
  entry: ZipEntry,
): AsyncGenerator<Uint8Array, void, undefined> {
  const what = quoteName(entry.name);
  const packed = file.stream(entry.packedAt, entry.packedBytes, what);
  if (!entry.deflated) {
    yield* packed;
    return;
  }
  const inflate = createInflateRaw();
  // Every error reaches the loop below through `inflate`, which the pipeline destroys with it.
  pipeline(Readable.from(packed, { objectMode: true, highWaterMark: 1 }), inflate, () => undefined);
  try {
    for await (const chunk of inflate) yield chunk;
  } catch (error) {
    if (error instanceof PserverError) throw error;
    throw badFile(file.path, `packed bytes of ${what}`, "deflated data", "other bytes", error);
  } finally {
    inflate.destroy();
  }
}
