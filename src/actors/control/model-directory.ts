import { stat } from "node:fs/promises";
import { basename } from "node:path";
import { PserverError } from "../../protocol/index.ts";
import { errnoCode, fileError } from "../../system/file-errors.ts";

const ADVICE = "create it again, or start the host with another --model-dir";

/** Where a host saves models. */
export interface ModelDirectory {
  readonly directory: string;
  readonly host: string;
  /** Told of an error with the whole path, which trainers are not told. */
  readonly onError: (error: PserverError) => void;
}

/**
 * Checks, before a save, that the model directory exists. It is not created again: it is also missing
 * where a disk is not mounted, and the model would be written to the wrong disk.
 * @throws IO that names the host, the last name of the directory, and what to do.
 */
export async function checkModelDirectory(model: ModelDirectory): Promise<void> {
  const { directory, host, onError } = model;
  const problem = await problemOf(directory);
  if (problem === undefined) return;
  const details = { host };
  const told = (shown: string): string =>
    `the model directory ${shown} of host ${host} ${problem}: ${ADVICE}`;
  onError(new PserverError("IO", told(directory), { ...details, path: directory }));
  throw new PserverError("IO", told(`…/${basename(directory)}`), details);
}

async function problemOf(directory: string): Promise<string | undefined> {
  try {
    return (await stat(directory)).isDirectory() ? undefined : "is not a directory";
  } catch (error) {
    const errno = errnoCode(error);
    if (errno === "ENOENT" || errno === "ENOTDIR") return "does not exist";
    throw fileError("examine the model directory", directory, error);
  }
}
