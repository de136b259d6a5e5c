import { badFile } from "./bad-file.ts";
import { decodeFileText } from "./file-text.ts";
import type { ModelFile } from "./model-file.ts";
import { PAX_BYTES_MAX, parsePax } from "./pax.ts";
import { TAR_BLOCK_BYTES, TAR_FIELDS, TAR_TYPES, tarChecksum, tarPadding } from "./tar-format.ts";
import { DESCRIPTION_BYTES_MAX, TENSORS_MAX } from "./tensor.ts";

/** A member of an archive. Its data lies in the file: that is checked. */
export interface TarEntry {
  readonly name: string;
  readonly bytes: number;
  readonly dataAt: number;
  /** The pax records of this member alone that were asked for. */
  readonly attributes: ReadonlyMap<string, string>;
}

/** Contents of an archive. */
export interface TarContents {
  readonly entries: readonly TarEntry[];
  readonly globalAttributes: ReadonlyMap<string, string>;
}

/** Two members per tensor, each with at most one pax or long-name header before it. */
const HEADERS_MAX = 4 * TENSORS_MAX;

/**
 * The table of contents of a tar archive: ustar, pax and GNU's long names and sizes. Only regular
 * files are members of a model; the archive must end with its two blocks of zeros. Of pax records only
 * those called as in `attributeNames` are kept: others could fill the memory.
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
        throw badFile(file.path, `type of the ${what}`, "a regular file", JSON.stringify(type));
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

/** A number in octal digits, or GNU's big-endian form for larger ones, marked by the first bit. */
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
