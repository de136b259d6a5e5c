import { quoteName } from "../protocol/names.ts";
import { badFile } from "./bad-file.ts";
import { decodeFileText } from "./file-text.ts";
import type { ModelFile } from "./model-file.ts";
import { TENSORS_MAX } from "./tensor.ts";
import { readZipEnd } from "./zip-end.ts";
import {
  IN_EXTRA_32,
  ZIP_BYTES,
  ZIP_FLAGS,
  ZIP_METHODS,
  ZIP_SIGNATURES,
  ZIP64_EXTRA,
} from "./zip-format.ts";

/**
 * A member of an archive. Its data lies in the file and overlaps no other member's: that is
 * checked.
 */
export interface ZipEntry {
  readonly name: string;
  /** Its comment in the central directory, read as UTF-8. */
  readonly comment: string;
  readonly deflated: boolean;
  /** Unpacked bytes, and their checksum, as the archive claims; checked when they are read. */
  readonly bytes: number;
  readonly crc: number;
  readonly packedBytes: number;
  readonly packedAt: number;
  /** Where the header before the data begins. */
  readonly localAt: number;
}

/** Contents of an archive. */
export interface ZipContents {
  readonly entries: readonly ZipEntry[];
  readonly comment: string;
}

interface CentralEntry extends Omit<ZipEntry, "packedAt"> {
  readonly flags: number;
  readonly method: number;
}

/**
 * The table of contents of a zip archive: the central directory, each entry compared with the header
 * before its data.
 * @throws BAD_FILE for anything but stored and deflated members, once each; IO.
 */
export async function readZip(file: ModelFile): Promise<ZipContents> {
  const { members, centralAt, centralBytes, comment } = await readZipEnd(file);
  if (members > TENSORS_MAX) throw badFile(file.path, "members", `at most ${TENSORS_MAX}`, members);
  const central = await file.read(centralAt, centralBytes, "central directory");
  const entries: ZipEntry[] = [];
  const names = new Set<string>();
  let at = 0;
  for (let i = 0; i < members; i++) {
    const { entry, next } = decodeCentral(file.path, central, at);
    if (names.has(entry.name)) {
      throw badFile(file.path, "members", "each name once", `${quoteName(entry.name)} again`);
    }
    names.add(entry.name);
    entries.push(await locate(file, entry, centralAt));
    at = next;
  }
  if (at !== centralBytes)
    throw badFile(file.path, "bytes of the central directory", at, centralBytes);
  checkApart(file.path, entries);
  return { entries, comment };
}

function decodeCentral(
  path: string,
  central: Uint8Array,
  at: number,
): { entry: CentralEntry; next: number } {
  const view = new DataView(central.buffer, central.byteOffset, central.byteLength);
  const what = `central directory entry at ${at}`;
  const leftBytes = central.byteLength - at;
  if (leftBytes < ZIP_BYTES.central || view.getUint32(at, true) !== ZIP_SIGNATURES.central) {
    throw badFile(path, what, "an entry", `${leftBytes} other bytes`);
  }
  const nameEnd = at + ZIP_BYTES.central + view.getUint16(at + 28, true);
  const extraEnd = nameEnd + view.getUint16(at + 30, true);
  const next = extraEnd + view.getUint16(at + 32, true);
  if (next > central.byteLength) {
    throw badFile(path, what, `at most ${leftBytes} bytes`, next - at);
  }
  const name = decodeFileText(path, what, central.subarray(at + ZIP_BYTES.central, nameEnd));
  const flags = view.getUint16(at + 8, true);
  const method = view.getUint16(at + 10, true);
  if ((flags & ZIP_FLAGS.encrypted) !== 0) {
    throw badFile(path, quoteName(name), "no encryption", `flags ${flags}`);
  }
  if (method !== ZIP_METHODS.stored && method !== ZIP_METHODS.deflated) {
    throw badFile(path, `method of ${quoteName(name)}`, "stored (0) or deflated (8)", method);
  }
  // The extra field holds, in this order, only the values whose 4-byte field is full.
  const large = readZip64Extra(path, name, central.subarray(nameEnd, extraEnd));
  const wide = (field: number): number => {
    const value = view.getUint32(at + field, true);
    if (value !== IN_EXTRA_32) return value;
    const extended = large.shift();
    if (extended === undefined) throw badFile(path, quoteName(name), "an 8-byte size", "none");
    return extended;
  };
  const bytes = wide(24);
  const packedBytes = wide(20);
  const localAt = wide(42);
  const deflated = method === ZIP_METHODS.deflated;
  if (!deflated && packedBytes !== bytes) {
    throw badFile(path, `stored bytes of ${quoteName(name)}`, bytes, packedBytes);
  }
  const crc = view.getUint32(at + 16, true);
  const comment = Buffer.from(central.subarray(extraEnd, next)).toString();
  return {
    entry: { name, comment, deflated, bytes, packedBytes, crc, localAt, flags, method },
    next,
  };
}

/** The 8-byte numbers of the zip64 extra field; none if it is absent. */
function readZip64Extra(path: string, name: string, extra: Uint8Array): number[] {
  const view = new DataView(extra.buffer, extra.byteOffset, extra.byteLength);
  for (let at = 0; at + 4 <= extra.byteLength; ) {
    const id = view.getUint16(at, true);
    const end = at + 4 + view.getUint16(at + 2, true);
    if (end > extra.byteLength) break;
    if (id === ZIP64_EXTRA) {
      const values: number[] = [];
      for (let field = at + 4; field + 8 <= end; field += 8) {
        const value = Number(view.getBigUint64(field, true));
        if (!Number.isSafeInteger(value)) {
          throw badFile(path, `sizes of ${quoteName(name)}`, "numbers below 2^53", value);
        }
        values.push(value);
      }
      return values;
    }
    at = end;
  }
  return [];
}

/** Finds the data of a member, and checks that its local header agrees with the directory. */
async function locate(file: ModelFile, entry: CentralEntry, centralAt: number): Promise<ZipEntry> {
  const { name, comment, deflated, bytes, packedBytes, crc, localAt } = entry;
  const what = `local header of ${quoteName(name)}`;
  const local = await file.read(localAt, ZIP_BYTES.local, what);
  const view = new DataView(local.buffer);
  const nameBytes = view.getUint16(26, true);
  const localName = await file.read(localAt + ZIP_BYTES.local, nameBytes, what);
  if (
    view.getUint32(0, true) !== ZIP_SIGNATURES.local ||
    view.getUint16(6, true) !== entry.flags ||
    view.getUint16(8, true) !== entry.method ||
    decodeFileText(file.path, what, localName) !== name
  ) {
    throw badFile(file.path, what, "the flags, method and name of the directory", "others");
  }
  const packedAt = localAt + ZIP_BYTES.local + nameBytes + view.getUint16(28, true);
  if (packedAt + packedBytes > centralAt) {
    const leftBytes = centralAt - packedAt;
    throw badFile(
      file.path,
      `packed bytes of ${quoteName(name)}`,
      `at most ${leftBytes}`,
      packedBytes,
    );
  }
  return { name, comment, deflated, bytes, packedBytes, crc, packedAt, localAt };
}

function checkApart(path: string, entries: readonly ZipEntry[]): void {
  const inOrder = [...entries].sort((a, b) => a.localAt - b.localAt);
  let end = 0;
  for (const { name, localAt, packedAt, packedBytes } of inOrder) {
    if (localAt < end)
      throw badFile(path, `place of ${quoteName(name)}`, `from ${end} on`, localAt);
    end = packedAt + packedBytes;
  }
}
