import { mkdtempSync, rmSync } from "node:fs";
import { open } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { onTestFinished } from "vitest";
import { ContainerReader, ContainerWriter } from "../../../src/history/archive/container.ts";

import type { Frame } from "../../../src/history/archive/frames.ts";

/** A directory that goes with the test. */
export function temporaryDirectory(): string {
  const path = mkdtempSync(join(tmpdir(), "pserver-history-"));
  onTestFinished(() => rmSync(path, { recursive: true, force: true }));
  return path;
}

/** Writes a complete file of frames. */
export async function writeContainer(path: string, frames: readonly Frame[]): Promise<void> {
  const handle = await open(path, "w");
  try {
    const writer = ContainerWriter.begin(handle, path);
    for (const frame of frames) await writer.append(frame);
    await writer.end();
  } finally {
    await handle.close();
  }
}

/** All frames of a complete file. */
export async function readContainer(path: string): Promise<Frame[]> {
  await using reader = await ContainerReader.open(path);
  const frames: Frame[] = [];
  for await (const batch of reader.frames()) frames.push(...batch.map(({ frame }) => frame));
  return frames;
}
