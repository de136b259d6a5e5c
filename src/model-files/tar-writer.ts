import {
  TAR_BLOCK_BYTES,
  TAR_FIELDS,
  TAR_RECORD_BYTES,
  TAR_TYPES,
  tarChecksum,
  tarPadding,
} from "./tar-format.ts";

/** A file on its way into an archive. `chunks` yields exactly `bytes` bytes. */
export interface TarMember {
  readonly name: string;
  readonly bytes: number;
  /** More pax records for this member. */
  readonly attributes: Readonly<Record<string, string>>;
  readonly chunks: () => AsyncIterable<Uint8Array>;
}

/** The largest size eleven octal digits can say. */
const OCTAL_SIZE_MAX = 8 ** 11 - 1;

/**
 * The bytes of a ustar archive. A member whose name is not plain ASCII of at most 100 characters,
 * whose size does not fit or that has attributes gets a pax header before it. Names must not hold NUL.
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

/** `<length> <key>=<value>\n`, where the length counts its own digits. */
function encodePaxRecord(key: string, value: string): string {
  const rest = Buffer.byteLength(` ${key}=${value}\n`);
  let length = rest;
  while (rest + String(length).length !== length) length = rest + String(length).length;
  return `${length} ${key}=${value}\n`;
}
