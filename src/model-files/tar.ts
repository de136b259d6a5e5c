import { badFile, decodeFileText } from "./file-text.ts";
import type { ModelFile } from "./model-file.ts";
import { DESCRIPTION_BYTES_MAX, TENSORS_MAX } from "./tensor-headers.ts";

/** The parts of the tar format that the writer and the reader share. */

/** Everything in an archive begins at a multiple of this. */
const TAR_BLOCK_BYTES = 512;

/** Archives are padded with zeros to a multiple of this, for tape. */
const TAR_RECORD_BYTES = 20 * TAR_BLOCK_BYTES;

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
const TAR_TYPES = {
  file: "0",
  oldFile: "\0",
  directory: "5",
  pax: "x",
  globalPax: "g",
  gnuLongName: "L",
} as const;

/** Returns the sum of a header's bytes, with spaces in place of its checksum field. */
export function tarChecksum(block: Uint8Array): number {
  const [begin, length] = TAR_FIELDS.checksum;
  let sum = length * 0x20;
  for (const byte of block.subarray(0, begin)) sum += byte;
  for (const byte of block.subarray(begin + length)) sum += byte;
  return sum;
}

/** Returns the number of zero bytes between `bytes` bytes of data and the next block. */
function tarPadding(bytes: number): number {
  return (TAR_BLOCK_BYTES - (bytes % TAR_BLOCK_BYTES)) % TAR_BLOCK_BYTES;
}

/** Most bytes of a pax header or a long name; the longest that we write holds metadata. */
const PAX_BYTES_MAX = 256 * 1024;

/** Records of one header; other programs write about ten. */
const RECORDS_MAX = 256;

/**
 * Reads the records of a pax header, `<length> <key>=<value>\n`; the length is that of the whole record.
 * @throws BAD_FILE if one is not of this form or not UTF-8, or if there are more than 256.
 */
function parsePax(path: string, what: string, data: Uint8Array): Map<string, string> {
  const records = new Map<string, string>();
  const bytes = Buffer.from(data.buffer, data.byteOffset, data.byteLength);
  for (let at = 0; at < bytes.length; ) {
    const space = bytes.indexOf(0x20, at);
    const digits = bytes.toString("latin1", at, Math.min(space, at + 10));
    const end = at + Number(digits);
    const isRecord = space > at && /^\d+$/.test(digits) && end > space && end <= bytes.length;
    if (!isRecord || bytes[end - 1] !== 0x0a) {
      throw badFile(path, `pax record in the ${what}`, "a length and as many bytes", "other bytes");
    }
    const text = decodeFileText(path, what, bytes.subarray(space + 1, end - 1));
    const equals = text.indexOf("=");
    if (equals < 1) throw badFile(path, `pax record in the ${what}`, "a key and a value", "no key");
    if (records.size >= RECORDS_MAX)
      throw badFile(path, `pax records in the ${what}`, `at most ${RECORDS_MAX}`, "more");
    records.set(text.slice(0, equals), text.slice(equals + 1));
    at = end;
  }
  return records;
}

/** A member of an archive. Its data was found to lie in the file. */
export interface TarEntry {
  readonly name: string;
  readonly bytes: number;
  readonly dataAt: number;
  /** Those of the member's own pax records that were asked for. */
  readonly attributes: ReadonlyMap<string, string>;
}

/** Contents of an archive. */
export interface TarContents {
  readonly entries: readonly TarEntry[];
  readonly globalAttributes: ReadonlyMap<string, string>;
}

/**
 * Most headers of an archive: two members per tensor, each with at most one pax or long-name header before
 * it.
 */
const HEADERS_MAX = 4 * TENSORS_MAX;

/**
 * Reads the table of contents of a tar archive: ustar, pax and GNU's long names and sizes. Only regular files
 * are members of a model, and directories are passed over; the archive must end with its two blocks of zeros. Of pax records only those named
 * in `attributeNames` are kept: others could fill the memory.
 * @throws BAD_FILE, IO.
 */
export async function readTar(
  file: ModelFile,
  attributeNames: readonly string[],
): Promise<TarContents> {
  const keep = (records: ReadonlyMap<string, string>, kept: Map<string, string>): void => {
    for (const key of ["path", "size", ...attributeNames]) {
      const value = records.get(key);
      if (value !== undefined) kept.set(key, value);
    }
  };
  const entries: TarEntry[] = [];
  const globalAttributes = new Map<string, string>();
  let attributes = new Map<string, string>();
  let position = 0;
  let descriptionBytes = 0;
  for (let headers = 0; ; headers++) {
    const what = `tar header at ${position}`;
    if (headers > HEADERS_MAX)
      throw badFile(file.path, "tar headers", `at most ${HEADERS_MAX}`, headers);
    const block = await file.read(position, TAR_BLOCK_BYTES, what);
    if (block.every((byte) => byte === 0)) break;
    const { type, name, bytes: ownBytes } = decodeHeader(file.path, what, block);
    const dataAt = position + TAR_BLOCK_BYTES;
    const isFile = type === TAR_TYPES.file || type === TAR_TYPES.oldFile;
    const bytes = isFile ? sizeFrom(file.path, what, attributes, ownBytes) : ownBytes;
    file.checkRange(dataAt, bytes + tarPadding(bytes), `member of the ${what}`);
    position = dataAt + bytes + tarPadding(bytes);
    if (isFile) {
      entries.push({ name: attributes.get("path") ?? name, bytes, dataAt, attributes });
      attributes = new Map();
      continue;
    }
    if (type === TAR_TYPES.directory) {
      attributes = new Map();
      continue;
    }
    if (bytes > PAX_BYTES_MAX)
      throw badFile(file.path, `bytes described by the ${what}`, `at most ${PAX_BYTES_MAX}`, bytes);
    descriptionBytes += bytes;
    if (descriptionBytes > DESCRIPTION_BYTES_MAX) {
      const expected = `at most ${DESCRIPTION_BYTES_MAX}`;
      throw badFile(file.path, "bytes of headers of the tar archive", expected, descriptionBytes);
    }
    const data = await file.read(dataAt, bytes, what);
    switch (type) {
      case TAR_TYPES.pax:
        keep(parsePax(file.path, what, data), attributes);
        break;
      case TAR_TYPES.globalPax:
        keep(parsePax(file.path, what, data), globalAttributes);
        break;
      case TAR_TYPES.gnuLongName:
        attributes.set("path", textUntilNul(file.path, what, data));
        break;
      default:
        throw badFile(
          file.path,
          `type of the ${what}`,
          "a regular file or a directory",
          JSON.stringify(type),
        );
    }
  }
  const last = await file.read(position, 2 * TAR_BLOCK_BYTES, "end of the tar archive");
  if (last.some((byte) => byte !== 0)) {
    throw badFile(file.path, "end of the tar archive", "two blocks of zeros", "one");
  }
  if (attributes.size > 0) {
    throw badFile(file.path, "end of the tar archive", "a member after its pax header", "none");
  }
  return { entries, globalAttributes };
}

interface Header {
  readonly type: string;
  readonly name: string;
  readonly bytes: number;
}

function decodeHeader(path: string, what: string, block: Uint8Array): Header {
  const field = ([begin, length]: readonly [number, number]): Uint8Array =>
    block.subarray(begin, begin + length);
  const checksum = parseNumber(path, `checksum of the ${what}`, field(TAR_FIELDS.checksum));
  if (checksum !== tarChecksum(block)) {
    throw badFile(path, `checksum of the ${what}`, tarChecksum(block), checksum);
  }
  const name = textUntilNul(path, what, field(TAR_FIELDS.name));
  // GNU writes "ustar " and uses the prefix field for other things.
  const isUstar = Buffer.from(field(TAR_FIELDS.magic)).toString("latin1") === "ustar\0";
  const prefix = isUstar ? textUntilNul(path, what, field(TAR_FIELDS.prefix)) : "";
  return {
    type: Buffer.from(field(TAR_FIELDS.type)).toString("latin1"),
    name: prefix === "" ? name : `${prefix}/${name}`,
    bytes: parseNumber(path, `size in the ${what}`, field(TAR_FIELDS.size)),
  };
}

/** Reads a number in octal digits, or in GNU's big-endian form for larger ones, which the first bit tells. */
function parseNumber(path: string, what: string, field: Uint8Array): number {
  const [first = 0, ...rest] = field;
  if (first === 0x80) {
    const value = rest.reduce((sum, byte) => sum * 256 + byte, 0);
    if (Number.isSafeInteger(value)) return value;
    throw badFile(path, what, "a number below 2^53", value);
  }
  const text = Buffer.from(field).toString("latin1");
  const digits = /^ *([0-7]+)[ \0]*$/.exec(text)?.[1];
  if (digits === undefined) throw badFile(path, what, "octal digits", JSON.stringify(text));
  return Number.parseInt(digits, 8);
}

function sizeFrom(
  path: string,
  what: string,
  attributes: ReadonlyMap<string, string>,
  ownBytes: number,
): number {
  const text = attributes.get("size");
  if (text === undefined) return ownBytes;
  const bytes = Number(text);
  if (/^\d+$/.test(text) && Number.isSafeInteger(bytes)) return bytes;
  throw badFile(path, `size before the ${what}`, "a number below 2^53", JSON.stringify(text));
}

function textUntilNul(path: string, what: string, bytes: Uint8Array): string {
  const end = bytes.indexOf(0);
  return decodeFileText(path, what, end < 0 ? bytes : bytes.subarray(0, end));
}

/** A file on its way into an archive. `chunks` yields exactly `bytes` bytes. */
export interface TarMember {
  readonly name: string;
  readonly bytes: number;
  /** More pax records for this member. */
  readonly attributes: Readonly<Record<string, string>>;
  readonly chunks: () => AsyncIterable<Uint8Array>;
}

/** The largest size that eleven octal digits can hold. */
const OCTAL_SIZE_MAX = 8 ** 11 - 1;

/**
 * Yields the bytes of a ustar archive. A member gets a pax header if its name is not plain ASCII of at most
 * 100 characters, its size does not fit, or it has attributes. Names must not hold NUL.
 * @throws what `chunks` throws.
 */
export async function* writeTar(
  members: Iterable<TarMember>,
  globalAttributes: Readonly<Record<string, string>>,
): AsyncGenerator<Uint8Array, void, undefined> {
  let written = 0;
  if (Object.keys(globalAttributes).length > 0) {
    const pax = encodePax(TAR_TYPES.globalPax, "pax_global_header", globalAttributes);
    written += pax.byteLength;
    yield pax;
  }
  let index = 0;
  for (const member of members) {
    const plainName = /^[\x20-\x7e]{1,100}$/.test(member.name);
    const plainSize = member.bytes <= OCTAL_SIZE_MAX;
    const attributes = {
      ...(plainName ? {} : { path: member.name }),
      ...(plainSize ? {} : { size: String(member.bytes) }),
      ...member.attributes,
    };
    const shortName = plainName ? member.name : `member-${index}`;
    if (Object.keys(attributes).length > 0) {
      const pax = encodePax(TAR_TYPES.pax, `pax-header-${index}`, attributes);
      written += pax.byteLength;
      yield pax;
    }
    yield encodeHeader(TAR_TYPES.file, shortName, plainSize ? member.bytes : 0);
    yield* member.chunks();
    const padding = tarPadding(member.bytes);
    if (padding > 0) yield new Uint8Array(padding);
    written += TAR_BLOCK_BYTES + member.bytes + padding;
    index++;
  }
  const unpadded = written + 2 * TAR_BLOCK_BYTES;
  yield new Uint8Array(Math.ceil(unpadded / TAR_RECORD_BYTES) * TAR_RECORD_BYTES - written);
}

function encodeHeader(type: string, name: string, bytes: number): Uint8Array {
  const block = new Uint8Array(TAR_BLOCK_BYTES);
  const put = ([begin, length]: readonly [number, number], text: string): void => {
    block.set(Buffer.from(text, "latin1").subarray(0, length), begin);
  };
  put(TAR_FIELDS.name, name);
  put(TAR_FIELDS.mode, "0000644\0");
  put(TAR_FIELDS.uid, "0000000\0");
  put(TAR_FIELDS.gid, "0000000\0");
  put(TAR_FIELDS.size, `${bytes.toString(8).padStart(11, "0")}\0`);
  // No time of writing: equal models make equal files.
  put(TAR_FIELDS.mtime, "00000000000\0");
  put(TAR_FIELDS.type, type);
  put(TAR_FIELDS.magic, "ustar\0");
  put(TAR_FIELDS.version, "00");
  put(TAR_FIELDS.checksum, `${tarChecksum(block).toString(8).padStart(6, "0")}\0 `);
  return block;
}

function encodePax(
  type: string,
  name: string,
  attributes: Readonly<Record<string, string>>,
): Uint8Array {
  const records = Object.entries(attributes).map(([key, value]) => encodePaxRecord(key, value));
  const text = Buffer.from(records.join(""));
  const header = encodeHeader(type, name, text.byteLength);
  const padding = new Uint8Array(tarPadding(text.byteLength));
  return Buffer.concat([header, text, padding]);
}

/** Writes the pax record `<length> <key>=<value>\n`, whose length includes its own digits. */
function encodePaxRecord(key: string, value: string): string {
  const rest = Buffer.byteLength(` ${key}=${value}\n`);
  let length = rest;
  while (rest + String(length).length !== length) length = rest + String(length).length;
  return `${length} ${key}=${value}\n`;
}
