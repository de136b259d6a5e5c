import { readdir, readFile, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { type JetStreamManager, jetstreamManager } from "@nats-io/jetstream";
import { decodeMessage, parseRecordHeader } from "../../../src/protocol/index.ts";
import type { TestBroker } from "../../support/broker.ts";
import type { TestHost, TestJob } from "../../support/host.ts";
import { Archive } from "./journal-fold.ts";

/** Directory of a stream in the store of a broker. */
export function streamDirectory(
  { broker }: { readonly broker: Pick<TestBroker, "storeDir"> },
  stream: string,
): string {
  return join(broker.storeDir, "jetstream", "$G", "streams", stream);
}

/** Where a record has a bit changed: its last byte, or the length of its subject, two bytes before that. */
export type HurtPart = "payload" | "subject-length";

/**
 * Changes one bit in whichever file of a directory holds some bytes: in the last of them, or so many bytes after
 * the first.
 */
export async function flipBitOf(
  directory: string,
  bytes: Uint8Array,
  offset: number = bytes.length - 1,
): Promise<void> {
  for (const entry of await readdir(directory, { recursive: true, withFileTypes: true })) {
    if (!entry.isFile()) continue;
    const path = join(entry.parentPath, entry.name);
    const content = await readFile(path);
    const at = content.indexOf(bytes);
    if (at < 0) continue;
    const hurt = at + offset;
    content[hurt] = (content[hurt] ?? 0) ^ 1;
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

/** A record of shard 0's journal, and the last one there. */
export interface Place {
  readonly at: number;
  readonly last: number;
}

/**
 * The record of update `n` of shard 0's counter. It is looked for: on a busy machine hosts and clients
 * repeat themselves, and a journal has some records more.
 */
export async function updateRecord(
  streams: JetStreamManager["streams"],
  stream: string,
  n: number,
): Promise<Place & { readonly subject: string; readonly payload: Uint8Array }> {
  const { last_seq: last } = (await streams.info(stream)).state;
  const updates = new Set<number>();
  for (let seq = 1; seq <= last; seq++) {
    const record = await streams.getMessage(stream, { seq });
    if (record?.subject.includes(".push.") !== true) continue;
    const payload = Uint8Array.from(record.data);
    updates.add(parseRecordHeader(decodeMessage(payload).fields).n);
    if (updates.size === n) return { at: seq, last, subject: record.subject, payload };
  }
  throw new Error(`the journal holds ${updates.size} updates; expected ${n}`);
}

/** Kills the host, and has a bit of update `n` of shard 0's counter change while the broker is stopped. */
export async function hurtUpdate(
  job: TestJob,
  host: TestHost,
  n: number,
  part: HurtPart = "payload",
): Promise<Place> {
  await using archive = await Archive.open(job.broker.url, job.job);
  const { streams } = await jetstreamManager(archive.connection);
  const { subject, payload, ...place } = await updateRecord(streams, "PS_j_0", n);
  await archive.close();
  await host.kill();
  await job.broker.stop();
  const stored = Buffer.concat([Buffer.from(subject), payload]);
  const offset = part === "payload" ? stored.length - 1 : -2;
  await flipBitOf(streamDirectory(job, "PS_j_0"), stored, offset);
  await job.broker.start();
  return place;
}
