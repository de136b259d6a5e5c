import { copyFile, mkdir } from "node:fs/promises";
import { basename, join, relative, resolve } from "node:path";

/** The command as it is run in a checkout. */
const PSERVER = "node dist/pserver.js";

/** Copies a saved model into a directory, made if needed; returns its path there. */
export async function keepModel(file: string, directory: string): Promise<string> {
  await mkdir(directory, { recursive: true });
  const kept = resolve(join(directory, basename(file)));
  await copyFile(file, kept);
  return kept;
}

/** Writes command lines that use a kept model from the directory `from`. */
export function nextSteps(kept: string, job: string, from: string): string {
  const path = relative(from, kept);
  return `
The model is kept. To serve it:
  ${PSERVER} up --job ${job}    # leave it running; then elsewhere:
  ${PSERVER} load ${path} --job ${job}
  ${PSERVER} ls --job ${job}
  ${PSERVER} get output.bias --job ${job}`;
}
