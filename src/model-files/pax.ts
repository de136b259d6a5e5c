import { badFile } from "./bad-file.ts";
import { decodeFileText } from "./file-text.ts";

/** Most bytes of a pax header or a long name; the longest that we write holds metadata. */
export const PAX_BYTES_MAX = 256 * 1024;

/** Records of one header; other programs write about ten. */
const RECORDS_MAX = 256;

/**
 * The records of a pax header: `<length> <key>=<value>\n`, the length counting the whole record.
 * @throws BAD_FILE if one is not of this form or not UTF-8, or if there are more than 256.
 */
export function parsePax(path: string, what: string, data: Uint8Array): Map<string, string> {
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
