import { badFile } from "./bad-file.ts";
import type { ModelFile } from "./model-file.ts";
import { DESCRIPTION_BYTES_MAX } from "./tensor.ts";
import {
  IN_EXTRA_16,
  IN_EXTRA_32,
  ZIP_BYTES,
  ZIP_SIGNATURES,
  ZIP_TEXT_BYTES_MAX,
} from "./zip-format.ts";

/** Location of the central directory, and the comment, from the end of an archive. */
export interface ZipEnd {
  readonly members: number;
  readonly centralAt: number;
  readonly centralBytes: number;
  readonly comment: string;
}

/**
 * Reads the end of a zip archive. The central directory must end where the end records begin.
 * @throws BAD_FILE, IO.
 */
export async function readZipEnd(file: ModelFile): Promise<ZipEnd> {
  const tailBytes = Math.min(file.bytes, ZIP_BYTES.end + ZIP_TEXT_BYTES_MAX);
  const tailAt = file.bytes - tailBytes;
  const tail = await file.read(tailAt, tailBytes, "end of the archive");
  const view = new DataView(tail.buffer);
  const at = findEnd(file.path, view);
  const endAt = tailAt + at;
  const end = {
    members: view.getUint16(at + 10, true),
    centralBytes: view.getUint32(at + 12, true),
    centralAt: view.getUint32(at + 16, true),
  };
  if (
    view.getUint16(at + 4, true) !== 0 ||
    view.getUint16(at + 6, true) !== 0 ||
    view.getUint16(at + 8, true) !== end.members
  ) {
    throw badFile(file.path, "volumes of the archive", 1, "several");
  }
  const inEnd64 =
    end.members === IN_EXTRA_16 ||
    end.centralBytes === IN_EXTRA_32 ||
    end.centralAt === IN_EXTRA_32;
  const comment = Buffer.from(tail.subarray(at + ZIP_BYTES.end)).toString();
  if (inEnd64) return { ...(await readEnd64(file, endAt)), comment };
  checkCentral(file.path, end.centralAt, end.centralBytes, endAt);
  return { ...end, comment };
}

/** Finds the last end record whose comment ends exactly at the end of the file. */
function findEnd(path: string, view: DataView): number {
  for (let at = view.byteLength - ZIP_BYTES.end; at >= 0; at--) {
    if (view.getUint32(at, true) !== ZIP_SIGNATURES.end) continue;
    if (at + ZIP_BYTES.end + view.getUint16(at + 20, true) === view.byteLength) return at;
  }
  throw badFile(path, "end of the archive", "the end record of a zip archive", "other bytes");
}

async function readEnd64(file: ModelFile, endAt: number): Promise<Omit<ZipEnd, "comment">> {
  const what = "8-byte end record";
  const locatorAt = endAt - ZIP_BYTES.end64Locator;
  const locator = await file.read(locatorAt, ZIP_BYTES.end64Locator, what);
  const locatorView = new DataView(locator.buffer);
  const at = Number(locatorView.getBigUint64(8, true));
  if (
    locatorView.getUint32(0, true) !== ZIP_SIGNATURES.end64Locator ||
    locatorView.getUint32(4, true) !== 0 ||
    at + ZIP_BYTES.end64 !== locatorAt
  ) {
    throw badFile(file.path, what, `at ${locatorAt - ZIP_BYTES.end64}`, `a locator of ${at}`);
  }
  const view = new DataView((await file.read(at, ZIP_BYTES.end64, what)).buffer);
  const members = Number(view.getBigUint64(32, true));
  const centralBytes = Number(view.getBigUint64(40, true));
  const centralAt = Number(view.getBigUint64(48, true));
  if (
    view.getUint32(0, true) !== ZIP_SIGNATURES.end64 ||
    view.getUint32(16, true) !== 0 ||
    view.getUint32(20, true) !== 0 ||
    Number(view.getBigUint64(24, true)) !== members
  ) {
    throw badFile(file.path, what, "that of an archive of one volume", "other values");
  }
  checkCentral(file.path, centralAt, centralBytes, at);
  return { members, centralAt, centralBytes };
}

function checkCentral(path: string, centralAt: number, centralBytes: number, endAt: number): void {
  if (centralBytes > DESCRIPTION_BYTES_MAX) {
    throw badFile(
      path,
      "central directory",
      `at most ${DESCRIPTION_BYTES_MAX} bytes`,
      centralBytes,
    );
  }
  if (centralAt + centralBytes !== endAt) {
    throw badFile(path, "end of the central directory", endAt, centralAt + centralBytes);
  }
}
