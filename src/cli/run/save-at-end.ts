import { statSync } from "node:fs";
import { isAbsolute } from "node:path";
import { formatOf, unknownFormat } from "../../model-files/index.ts";
import { ensureError } from "../../protocol/errors.ts";
import { formatBytes } from "../output/amounts.ts";
import type { Launch } from "./launch.ts";

/**
 * Checks the path of `--save` before any trainer starts.
 * @throws BAD_PATH if its ending names no format, and it is no directory here.
 */
export function checkSavePath(path: string): void {
  const isDirectory = statSync(path, { throwIfNoEntry: false })?.isDirectory() === true;
  if (formatOf(path) === undefined && !isDirectory) throw unknownFormat(path);
}

/** Saves the model if `--save` asks for it. @throws as `Client.saveModel` does. */
export async function saveModel({ flags, output, server }: Launch): Promise<void> {
  if (flags.save === undefined) return;
  const saved = await server.save(flags.save);
  const { file, bytes, format, host } = saved;
  const where = isAbsolute(file) || host === undefined ? file : `${file} on host ${host}`;
  if (output.json) output.value({ saved });
  else output.message(`saved ${formatBytes(bytes)} as ${format}: ${where}`);
}

/** Saves the model after a failure. An error here is only a warning: the run ends with the failure. */
export async function saveAnyway(launch: Launch): Promise<void> {
  try {
    await saveModel(launch);
  } catch (error) {
    const { code, message } = ensureError(error);
    launch.output.warning(`the model was not saved: ${code}: ${message}`);
  }
}
