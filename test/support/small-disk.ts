import { execFileSync } from "node:child_process";
import { mkdtempSync, rmSync } from "node:fs";
import { open, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";

const DISK_BYTES = 128 * 1024 * 1024;

/** What a file takes of the disk at least, and in whole numbers. */
const PAGE_BYTES = 4096;

/** A file system of 128 MiB, to be filled and freed. */
export class SmallDisk {
  readonly path: string;
  readonly #filling: string;

  constructor() {
    this.path = mkdtempSync(join(tmpdir(), "pserver-disk-"));
    this.#filling = join(this.path, "fill");
    mount(this.path);
  }

  /** Takes all room that is left, to the last page. */
  async fill(): Promise<void> {
    const file = await open(this.#filling, "a");
    try {
      for (const bytes of [1024 * 1024, PAGE_BYTES]) {
        const chunk = Buffer.alloc(bytes);
        while ((await written(file, chunk)) === bytes);
      }
    } finally {
      await file.close();
    }
  }

  /** Takes all room but a page, so that the next record begins to be written, and is not whole. */
  async fillButAPage(): Promise<void> {
    await this.fillBut(PAGE_BYTES);
  }

  /** Takes all room but so many bytes. */
  async fillBut(bytes: number): Promise<void> {
    await this.fill();
    const file = await open(this.#filling, "r+");
    try {
      await file.truncate((await file.stat()).size - bytes);
    } finally {
      await file.close();
    }
  }

  /** Takes so many bytes of the room. */
  async take(bytes: number): Promise<void> {
    await writeFile(this.#filling, Buffer.alloc(bytes));
  }

  async free(): Promise<void> {
    await rm(this.#filling);
  }

  remove(): void {
    execFileSync("umount", [this.path]);
    rmSync(this.path, { recursive: true });
  }
}

/** Bytes of a chunk that the disk still took. */
async function written(
  file: { write(chunk: Buffer): Promise<{ bytesWritten: number }> },
  chunk: Buffer,
): Promise<number> {
  try {
    return (await file.write(chunk)).bytesWritten;
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === "ENOSPC") return 0;
    throw error;
  }
}

function mount(path: string): void {
  execFileSync("mount", ["-t", "tmpfs", "-o", `size=${DISK_BYTES}`, "tmpfs", path], {
    stdio: "pipe",
  });
}

/** Why a file system cannot be mounted here, to be added to a test's name; "" where it can. */
export function mountObstacle(): string {
  const path = mkdtempSync(join(tmpdir(), "pserver-disk-"));
  try {
    mount(path);
    execFileSync("umount", [path]);
    return "";
  } catch (error) {
    const [line] = (error as Error).message.split("\n").slice(-2);
    return ` (skipped: a file system cannot be mounted here: ${line})`;
  } finally {
    rmSync(path, { recursive: true });
  }
}
