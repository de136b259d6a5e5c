import { readdir, readFile, stat, statfs } from "node:fs/promises";
import { join } from "node:path";
import { errnoCode, io } from "../system/file-errors.ts";
import { parseJsonObject } from "./json-object.ts";

/** What a store directory holds, in bytes. */
export interface StoredBytes {
  /** What its files take. */
  readonly used: number;
  /** What its streams have reserved, or hold where that is more. */
  readonly reserved: number;
}

/** The share of the free disk that a broker may fill; the rest is left to others. nats-server's own. */
const FREE_SHARE = 0.75;

/** For what is new on a disk where reservations take all: settings, small models. */
const SPARE_BYTES_MAX = 64 * 1024 * 1024;
const SPARE_SHARE = 0.25;

/**
 * How many bytes a broker on this store directory may keep in files: what the store uses and three
 * quarters of what the disk has free, and never less than what its streams have reserved. Left to
 * itself nats-server takes three quarters of what is free at its start: a disk that its own streams or
 * others have filled would make it refuse what it has stored and promised before.
 * @throws IO if the directory or the disk cannot be looked at.
 */
export async function storeLimitBytes(storeDir: string): Promise<number> {
  const disk = await io("look at the disk of", storeDir, statfs(storeDir));
  const stored = await readStoredBytes(storeDir);
  return limitBytes(disk.bavail * disk.bsize, stored);
}

/** The limit for a disk that has so many bytes free. */
export function limitBytes(freeBytes: number, { used, reserved }: StoredBytes): number {
  const spareBytes = Math.min(SPARE_BYTES_MAX, freeBytes * SPARE_SHARE);
  const limit = Math.max(used + freeBytes * FREE_SHARE, reserved + spareBytes);
  // nats-server 2.9 takes 0 for "choose yourself".
  return Math.max(1, Math.floor(limit));
}

/** What the streams of a store hold and have reserved, of all its accounts. */
export async function readStoredBytes(storeDir: string): Promise<StoredBytes> {
  let used = 0;
  let reserved = 0;
  const root = join(storeDir, "jetstream");
  for (const account of await entries(root)) {
    const streams = join(root, account, "streams");
    for (const stream of await entries(streams)) {
      const bytes = await fileBytes(join(streams, stream));
      used += bytes;
      reserved += Math.max(bytes, await reservedBytes(join(streams, stream)));
    }
  }
  return { used, reserved };
}

/** What a stream reserves by its configuration; 0 for one without a limit, or in memory. */
async function reservedBytes(stream: string): Promise<number> {
  const path = join(stream, "meta.inf");
  const text = await io("read", path, unlessGone(readFile(path, "utf8")));
  // Encrypted, or not whole: the broker says what is wrong with it when it starts.
  const { max_bytes, storage } = parseJsonObject(text ?? "") ?? {};
  if (storage !== "file" || !Number.isSafeInteger(max_bytes)) return 0;
  return Math.max(0, Number(max_bytes));
}

async function fileBytes(directory: string): Promise<number> {
  let bytes = 0;
  for (const name of await entries(directory)) {
    const path = join(directory, name);
    const found = await io("read", path, unlessGone(stat(path)));
    bytes += found?.isDirectory() === true ? await fileBytes(path) : (found?.size ?? 0);
  }
  return bytes;
}

/** The names in a directory; none where there is no such directory. */
async function entries(directory: string): Promise<readonly string[]> {
  return (await io("read", directory, unlessGone(readdir(directory)))) ?? [];
}

async function unlessGone<T>(reading: Promise<T>): Promise<T | undefined> {
  try {
    return await reading;
  } catch (error) {
    if (["ENOENT", "ENOTDIR"].includes(errnoCode(error) ?? "")) return undefined;
    throw error;
  }
}
