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

/** Writes command lines that serve what a run has kept in a directory, and look into it, from the directory `from`. */
export function nextSteps(directory: string, job: string, from: string): string {
  const path = relative(from, directory) || ".";
  return `
The model and its history are kept. To serve them, and see what happened:
  ${PSERVER} up --job ${job} --store ${path}    # leave it running; then elsewhere:
  ${PSERVER} log --job ${job} --last 10
  ${PSERVER} blame 'output.bias[3]' --job ${job} --most 5`;
}
