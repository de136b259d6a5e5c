import { readdir, readFile, writeFile } from "node:fs/promises";
import { join } from "node:path";
import type { TestHost, TestJob } from "../../support/host.ts";

/** Directory of a stream in the store of the job's broker. */
export function streamDirectory(job: TestJob, stream: string): string {
  return join(job.broker.storeDir, "jetstream", "$G", "streams", stream);
}

/** Changes one bit of the bytes in whichever file of a directory holds them. */
export async function flipBitOf(directory: string, bytes: Uint8Array): Promise<void> {
  for (const entry of await readdir(directory, { recursive: true, withFileTypes: true })) {
    if (!entry.isFile()) continue;
    const path = join(entry.parentPath, entry.name);
    const content = await readFile(path);
    const at = content.indexOf(bytes);
    if (at < 0) continue;
    const last = at + bytes.length - 1;
    content[last] = (content[last] ?? 0) ^ 1;
    await writeFile(path, content);
    return;
  }
  throw new Error(`no file below ${directory} holds the record`);
}

/** The code that a host says a shard has failed with; waits for it. */
export async function failureOf(host: TestHost, shard: number): Promise<string> {
  const line = await host.line((line) => line.type === "shard-failed" && line.shard === shard);
  return line.error?.code ?? "";
}
