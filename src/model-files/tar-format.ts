/** The parts of the tar format that the writer and the reader share. */

/** Everything in an archive begins at a multiple of this. */
export const TAR_BLOCK_BYTES = 512;

/** Archives are padded with zeros to a multiple of this, for tape. */
export const TAR_RECORD_BYTES = 20 * TAR_BLOCK_BYTES;

/** Where the fields of a header stand: first byte and length. */
export const TAR_FIELDS = {
  name: [0, 100],
  mode: [100, 8],
  uid: [108, 8],
  gid: [116, 8],
  size: [124, 12],
  mtime: [136, 12],
  checksum: [148, 8],
  type: [156, 1],
  magic: [257, 6],
  version: [263, 2],
  prefix: [345, 155],
} as const;

/** Kinds of members. */
export const TAR_TYPES = {
  file: "0",
  oldFile: "\0",
  pax: "x",
  globalPax: "g",
  gnuLongName: "L",
} as const;

/** The sum of a header's bytes, its checksum field counted as spaces. */
export function tarChecksum(block: Uint8Array): number {
  const [begin, length] = TAR_FIELDS.checksum;
  let sum = length * 0x20;
  for (const byte of block.subarray(0, begin)) sum += byte;
  for (const byte of block.subarray(begin + length)) sum += byte;
  return sum;
}

/** Zero bytes after `bytes` bytes of data, up to the next block. */
export function tarPadding(bytes: number): number {
  return (TAR_BLOCK_BYTES - (bytes % TAR_BLOCK_BYTES)) % TAR_BLOCK_BYTES;
}
