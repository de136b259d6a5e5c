import { readUint32, writeUint32 } from "../../protocol/big-endian.ts";
import { checksum } from "../../protocol/checksum/crc.ts";
import { PserverError, readCrc } from "../../protocol/index.ts";
import { badArchive } from "./bad-archive.ts";

/*
 * A file is a preamble and frames, the last of which is the end. All numbers are big-endian.
 *
 *     preamble  8 bytes  89 70 73 61 72 63 68 0a   "\x89psarch\n"
 *               4 bytes  version of the format
 *               4 bytes  CRC-32 of the 12 bytes before
 *     frame     4 bytes  length of the message
 *               4 bytes  CRC-32 of these 4 bytes
 *               n bytes  a message, with its own checksum
 */

/**
 * Versions of the format that can be read. Version 2 adds messages of tapes; what has none is written as
 * version 1, so that older programs read it, too.
 */
const CONTAINER_VERSIONS = [1, 2] as const;
/** One of {@link CONTAINER_VERSIONS}. */
export type ContainerVersion = (typeof CONTAINER_VERSIONS)[number];

const MAGIC = Buffer.from("\x89psarch\n", "latin1");
const VERSION_AT = MAGIC.length;
const PREAMBLE_CRC_AT = VERSION_AT + 4;

/** Bytes of a preamble; the first frame follows. */
export const PREAMBLE_BYTES: number = PREAMBLE_CRC_AT + 4;

/** Bytes of a frame before its message. */
export const HEAD_BYTES = 8;

/** The longest message: as long as a broker can take one (64 MiB), and some more for the entries. */
export const FRAME_BYTES_MAX: number = 80 * 1024 ** 2;

/** The preamble of a new file. */
export function makePreamble(version: ContainerVersion): Uint8Array {
  const bytes = new Uint8Array(PREAMBLE_BYTES);
  bytes.set(MAGIC);
  writeUint32(bytes, VERSION_AT, version);
  writeUint32(bytes, PREAMBLE_CRC_AT, checksum(bytes.subarray(0, PREAMBLE_CRC_AT)));
  return bytes;
}

/**
 * Passes for the preamble of a file that can be read here.
 * @throws BAD_ARCHIVE if it is none or damaged, BAD_VERSION for a file of another version.
 */
export function checkPreamble(path: string, bytes: Uint8Array): void {
  if (!MAGIC.equals(bytes.subarray(0, MAGIC.length))) {
    throw badArchive(path, 0, "expected a file of an archive; received something else");
  }
  if (bytes.length < PREAMBLE_BYTES) throw badArchive(path, bytes.length, "the file is cut off");
  if (checksum(bytes.subarray(0, PREAMBLE_CRC_AT)) !== readUint32(bytes, PREAMBLE_CRC_AT)) {
    throw badArchive(path, VERSION_AT, "the preamble is damaged");
  }
  const version = readUint32(bytes, VERSION_AT);
  if (CONTAINER_VERSIONS.some((known) => known === version)) return;
  const expected = CONTAINER_VERSIONS.join(" or ");
  throw new PserverError(
    "BAD_VERSION",
    `${path}: expected format version ${expected}; received ${version}. A newer pserver may read it.`,
    { path, expected, received: version },
  );
}

/** The head of a frame with a message of so many bytes. */
export function makeHead(messageBytes: number): Uint8Array {
  const head = new Uint8Array(HEAD_BYTES);
  writeUint32(head, 0, messageBytes);
  writeUint32(head, 4, checksum(head.subarray(0, 4)));
  return head;
}

/** Length of the message after a head. @throws BAD_ARCHIVE if the head at `offset` is damaged. */
export function readHead(path: string, offset: number, head: Uint8Array): number {
  const messageBytes = readUint32(head, 0);
  const isSound = checksum(head.subarray(0, 4)) === readUint32(head, 4);
  if (isSound && messageBytes <= FRAME_BYTES_MAX) return messageBytes;
  throw badArchive(path, offset, "the head of a frame is damaged");
}

/** The digest of the frames so far and one more. */
export function addToDigest(digest: number, head: Uint8Array, message: Uint8Array): number {
  const bytes = new Uint8Array(HEAD_BYTES + 4);
  bytes.set(head);
  writeUint32(bytes, HEAD_BYTES, readCrc(message));
  return checksum(bytes, digest);
}
