import { ensureError } from "../../protocol/index.ts";

/** Lists of segments tried while an archiver renames them. */
export const LISTS_MAX = 5;

/** Whether a segment is not there: the archiver may have completed it, and given it another name. */
export function isRenamed(error: unknown): boolean {
  return ensureError(error).details["errno"] === "ENOENT";
}
