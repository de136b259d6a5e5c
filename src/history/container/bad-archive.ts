import { PserverError } from "../../protocol/index.ts";

/** The BAD_ARCHIVE for what is wrong at a byte of an archive's file or a recorded file. */
export function badArchive(
  path: string,
  offset: number,
  problem: string,
  cause?: unknown,
): PserverError {
  return new PserverError(
    "BAD_ARCHIVE",
    `${path}, byte ${offset}: ${problem}`,
    { path, offset },
    cause === undefined ? undefined : { cause },
  );
}
