import { readdir, readFile, stat, statfs } from "node:fs/promises";
import { join } from "node:path";
import { errnoCode, io } from "../system/file-errors.ts";
import { parseJsonObject } from "./broker-config.ts";

/** Use of a store directory, in bytes. */
export interface StoredBytes {
  /** Size of its files. */
  readonly used: number;
  /** Reservations of its streams, or their sizes where those are larger. */
  readonly reserved: number;
}

/** Share of the free disk space that a broker may fill; nats-server uses the same. */
const FREE_SHARE = 0.75;

/** Space for settings and small models on a disk that is reserved completely. */
const SPARE_BYTES_MAX = 64 * 1024 * 1024;
const SPARE_SHARE = 0.25;

/**
 * Bytes that a broker on this store directory may keep in files: the size of the store plus three quarters
 * of the free disk space, and never less than its streams have reserved. By default nats-server takes
 * three quarters of the space that is free at its start; on a disk filled by its own streams it would
 * then refuse streams that it has stored before.
 * @throws IO if the directory or the disk cannot be read.
 */
export async function storeLimitBytes(storeDir: string): Promise<number> {
  const disk = await io("look at the disk of", storeDir, statfs(storeDir));
  const stored = await readStoredBytes(storeDir);
  return limitBytes(disk.bavail * disk.bsize, stored);
}

/** The limit for a disk with this many free bytes. */
export function limitBytes(freeBytes: number, { used, reserved }: StoredBytes): number {
  const spareBytes = Math.min(SPARE_BYTES_MAX, freeBytes * SPARE_SHARE);
  return Math.floor(Math.max(used + freeBytes * FREE_SHARE, reserved + spareBytes));
}

/** Sizes and reservations of the streams of a store, of all its accounts. */
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

/** Bytes that a stream's configuration reserves; 0 without a limit, or in memory. */
async function reservedBytes(stream: string): Promise<number> {
  const path = join(stream, "meta.inf");
  const text = await io("read", path, unlessGone(readFile(path, "utf8")));
  // Encrypted or incomplete files are left to the broker, which reports them when it starts.
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

/** The names in a directory; none if it does not exist. */
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
