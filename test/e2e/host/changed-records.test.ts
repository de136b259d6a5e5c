// Proves that nobody reads a wrong value after a byte of a journal's file has changed while nothing ran: for every
// byte, the shard stops and says so, or serves all that was acknowledged. The broker notices most of them. A changed
// length of a subject is told only by the checksum in the watermark, and then the error names the record. Each shard of a
// job has another byte or bit changed; all rounds begin with the same files.
import { cp, readFile, rm, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { afterEach, beforeEach, expect, test } from "vitest";
import { hashName, type WireError } from "../../../src/protocol/index.ts";
import { type TestHost, TestJob } from "../../support/host.ts";
import { QUICK_LEASE_MS } from "../../support/limits.ts";
import { untilWatermarkReached } from "./control.ts";
import { streamDirectory } from "./damage.ts";

/** A bit of a journal's file. */
interface Bit {
  readonly byte: number;
  readonly bit: number;
}

/** A record in a file of nats-server: 22 bytes with lengths, sequence and time; subject; payload; checksum. */
interface FileRecord {
  readonly seq: number;
  readonly offset: number;
  readonly bytes: number;
}

/** Offset of the length of the subject, two bytes that the broker's checksum leaves out. */
const SUBJECT_LENGTH_AT = 20;

let job: TestJob;
let names: string[];

beforeEach(() => {
  names = [];
});

afterEach(async () => {
  await job.remove();
});

/** A job with a parameter on each shard, updated and marked, whose host and broker have crashed since. */
async function crashed(shards: number, elements: number, updates: number): Promise<string> {
  job = await TestJob.start({ leaseMs: QUICK_LEASE_MS, shards });
  const host = await job.host();
  const client = await job.trainer("a");
  for (let shard = 0; shard < shards; shard++) {
    const name = nameOn(shard, shards);
    names.push(name);
    // Each by itself, so that it lies where its name's hash says.
    await client.createIfNotAlreadyCreated(name, new BigInt64Array(elements));
  }
  const ones = new BigInt64Array(elements).fill(1n);
  for (let i = 0; i < updates; i++) {
    await Promise.all(names.map((name) => client.pushFull(name, ones, 1, 1)));
  }
  for (let shard = 0; shard < shards; shard++) await untilWatermarkReached(job, shard);
  await host.kill();
  await job.broker.kill();
  const sound = join(job.broker.storeDir, "..", "sound");
  await cp(job.broker.storeDir, sound, { recursive: true });
  return sound;
}

function nameOn(shard: number, shards: number): string {
  for (let i = 0; ; i++) if (hashName(`c${i}`) % shards === shard) return `c${i}`;
}

function journalFile(shard: number): string {
  return join(streamDirectory(job, `PS_j_${shard}`), "msgs", "1.blk");
}

async function recordsOf(shard: number): Promise<FileRecord[]> {
  const file = await readFile(journalFile(shard));
  const records: FileRecord[] = [];
  for (let offset = 0; offset < file.length; offset += records.at(-1)?.bytes ?? 0) {
    const seq = Number(file.readBigUInt64LE(offset + 4));
    records.push({ seq, offset, bytes: file.readUInt32LE(offset) });
  }
  expect(records.map(({ seq }) => seq)).toEqual(records.map((_, i) => i + 1));
  return records;
}

/** Changes a bit of the journal of each shard in the files of `sound`, and starts broker and host on them. */
async function startWith(sound: string, bits: readonly Bit[]): Promise<TestHost> {
  await rm(job.broker.storeDir, { recursive: true });
  await cp(sound, job.broker.storeDir, { recursive: true });
  for (const [shard, { byte, bit }] of bits.entries()) {
    const file = await readFile(journalFile(shard));
    file[byte] = (file[byte] ?? 0) ^ (1 << bit);
    await writeFile(journalFile(shard), file);
  }
  await job.broker.start();
  const host = job.spawnHost();
  await host.until(() => {
    const failed = bits.filter((_, shard) => failureOf(host, shard) !== undefined);
    return failed.length + host.serving.length === names.length;
  });
  return host;
}

function failureOf(host: TestHost, shard: number): WireError | undefined {
  return host.lines.find((line) => line.type === "shard-failed" && line.shard === shard)?.error;
}

/** Ends the host and the broker as a crash does, after a new trainer has read what is served. */
async function readAll(host: TestHost, updates: number, round = 0): Promise<void> {
  const reader = await job.trainer(`reader-${round}`);
  for (const shard of host.serving) {
    const { data } = await reader.pullFull(names[shard] ?? "");
    expect(new Set<unknown>(data)).toEqual(new Set([BigInt(updates)]));
  }
  await reader.close();
  await host.kill();
  await job.broker.kill();
}

test("whatever byte of a journal changes, the shard stops or serves all that was acknowledged", async () => {
  const shards = 64;
  const sound = await crashed(shards, 1, 1);
  const records = await Promise.all(names.map((_, shard) => recordsOf(shard)));
  const sizes = records.map((own) => (own.at(-1)?.offset ?? 0) + (own.at(-1)?.bytes ?? 0));
  const told = new Set<string>();
  // Some names are longer than others: all bytes of the longest journal.
  for (let round = 0; round * shards < Math.max(...sizes); round++) {
    const bits = sizes.map((bytes, shard) => {
      const byte = (round * shards + shard) % bytes;
      return { byte, bit: byte % 8 };
    });
    const host = await startWith(sound, bits);
    for (const shard of names.keys()) {
      const { code = "serving" } = failureOf(host, shard) ?? {};
      expect(["serving", "JOURNAL_DAMAGED", "JOURNAL_LOST"]).toContain(code);
      told.add(code);
    }
    await readAll(host, 1, round);
  }
  expect(told).toContain("JOURNAL_DAMAGED");
  expect(told).toContain("JOURNAL_LOST");
});

test("whatever bit of the length of a subject changes, the error names the record; other shards serve", async () => {
  const lengthBits = 16;
  const hurt = 2 * lengthBits;
  const sound = await crashed(hurt + 1, 100, 2);
  const changed = await Promise.all(
    Array.from({ length: hurt }, async (_, shard) => {
      const records = await recordsOf(shard);
      // The first update, of which only the checksum of the journal tells, or the last record.
      const record = records.at(shard < lengthBits ? -2 : -1) as FileRecord;
      const byte = record.offset + SUBJECT_LENGTH_AT + ((shard >> 3) % 2);
      return { seq: record.seq, byte, bit: shard % 8 };
    }),
  );
  const host = await startWith(sound, changed);
  const codes = changed.map(({ seq }, shard) => {
    const { code, details = {} } = failureOf(host, shard) ?? { code: "serving" };
    expect([shard, details["seq"] ?? details["from"]]).toEqual([shard, seq]);
    return code;
  });
  // The broker itself finds those that are longer than the record; with some others it cannot send the record.
  expect(new Set(codes)).toEqual(new Set(["JOURNAL_DAMAGED", "JOURNAL_LOST"]));
  expect(host.serving).toEqual([hurt]);
  await readAll(host, 2);
});
