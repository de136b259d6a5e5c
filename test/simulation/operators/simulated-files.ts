import { AsyncLocalStorage } from "node:async_hooks";
import fs from "node:fs";
import promises from "node:fs/promises";
import { syncBuiltinESMExports } from "node:module";
import type { Random } from "../random.ts";

/** An operation on a file, as bugs are planted in it. */
export interface FileOperation {
  readonly name: "open" | "write" | "sync" | "truncate" | "rename" | "rm" | "list" | "make";
  readonly path: string;
}

/** Whether an operation has no effect, although its process believes that it has. */
export type IsDropped = (operation: FileOperation) => boolean;

/** An operation that waits until the schedule performs it. */
interface Waiting extends FileOperation {
  readonly effect: () => void;
  /** Does a part of it, as a process that dies in the middle. */
  readonly part: (() => void) | undefined;
}

/** A file that a process has open, and how many of its bytes survive the loss of power. */
interface OpenFile {
  readonly fd: number;
  syncedBytes: number;
}

const NEVER: Promise<never> = new Promise(() => undefined);

/** Operations by which a process takes something from others. */
const DECIDING: readonly string[] = ["rename", "rm"];

/**
 * What one process does with files, which are real. An operation that others can notice, or that notices others, waits
 * until the schedule performs it. A process that dies may have done a part of a write; if its machine loses power, what
 * it has written since it last waited for the disk may be lost, too.
 */
export class ProcessFiles {
  readonly #onAsked: (() => void) | undefined;
  readonly #isDropped: IsDropped;
  readonly #open: Set<OpenFile> = new Set();
  #queue: Waiting[] = [];
  #isDead = false;

  /** `onAsked` is called after each operation that waits; without it all are performed at once. */
  constructor(onAsked?: () => void, isDropped: IsDropped = () => false) {
    this.#onAsked = onAsked;
    this.#isDropped = isDropped;
  }

  /** Number of operations that wait. */
  get waiting(): number {
    return this.#queue.length;
  }

  /** Whether the first operation that waits decides something. */
  get isDeciding(): boolean {
    return DECIDING.includes(this.#queue[0]?.name ?? "");
  }

  /** Runs what the process does: its operations on files, and those of everything that it calls, are its own. */
  run<Result>(work: () => Result): Result {
    return acting.run(this, work);
  }

  /** Performs the first operation that waits. */
  perform(): void {
    this.#queue.shift()?.effect();
  }

  /** Ends the process, within its first operation that waits: it does and learns nothing more. */
  crash(random: Random): void {
    this.#isDead = true;
    const [first] = this.#queue.splice(0);
    if (first?.part !== undefined && random.chance(0.5)) first.part();
    const losesPower = this.#open.size > 0 && random.chance(0.5);
    for (const { fd, syncedBytes } of this.#open) {
      const { size } = fs.fstatSync(fd);
      const lost = losesPower ? random.below(size - Math.min(size, syncedBytes) + 1) : 0;
      if (lost > 0) fs.ftruncateSync(fd, size - lost);
      fs.closeSync(fd);
    }
    this.#open.clear();
  }

  /** Does an operation when the schedule performs it. */
  do<Result>(operation: FileOperation, act: () => Result, part?: () => void): Promise<Result> {
    if (this.#isDead) return NEVER;
    return new Promise<Result>((resolve, reject) => {
      const effect = (): void => {
        try {
          resolve(this.#isDropped(operation) ? (undefined as Result) : act());
        } catch (error) {
          reject(error);
        }
      };
      if (this.#onAsked === undefined) effect();
      else {
        this.#queue.push({ ...operation, effect, part });
        this.#onAsked();
      }
    });
  }

  /** Does what nobody else notices, and what may come at any time. */
  now<Result>(act: () => Result): Promise<Result> {
    return this.#isDead ? NEVER : new Promise((resolve) => resolve(act()));
  }

  /** Opens a file. */
  async open(path: string, flags = "r", mode?: number): Promise<SimulatedHandle> {
    return await this.do({ name: "open", path }, () => {
      const file = { fd: fs.openSync(path, flags, mode), syncedBytes: 0 };
      file.syncedBytes = fs.fstatSync(file.fd).size;
      this.#open.add(file);
      return new SimulatedHandle(this, file, path);
    });
  }

  /** Closes a file. */
  close(file: OpenFile): Promise<void> {
    return this.now(() => {
      this.#open.delete(file);
      fs.closeSync(file.fd);
    });
  }
}

/** A handle as `node:fs/promises` gives it, as far as the project uses it. */
class SimulatedHandle {
  readonly #files: ProcessFiles;
  readonly #file: OpenFile;
  readonly #path: string;

  constructor(files: ProcessFiles, file: OpenFile, path: string) {
    this.#files = files;
    this.#file = file;
    this.#path = path;
  }

  async write(bytes: Uint8Array, offset = 0, length = bytes.length - offset, at?: number) {
    const { fd } = this.#file;
    // Whoever writes may use the buffer again once it is written.
    const copy = bytes.slice(offset, offset + length);
    const write = (count: number): number => fs.writeSync(fd, copy, 0, count, at);
    const operation = { name: "write", path: this.#path } as const;
    const part = (): void => void write(length >> 1);
    return { bytesWritten: await this.#files.do(operation, () => write(length), part) };
  }

  async read(bytes: Uint8Array, offset: number, length: number, at: number) {
    const read = (): number => fs.readSync(this.#file.fd, bytes, offset, length, at);
    return { bytesRead: await this.#files.now(read) };
  }

  stat(): Promise<fs.Stats> {
    return this.#files.now(() => fs.fstatSync(this.#file.fd));
  }

  sync(): Promise<void> {
    return this.#files.do({ name: "sync", path: this.#path }, () => {
      this.#file.syncedBytes = fs.fstatSync(this.#file.fd).size;
    });
  }

  datasync(): Promise<void> {
    return this.sync();
  }

  truncate(bytes: number): Promise<void> {
    const { fd } = this.#file;
    return this.#files.do({ name: "truncate", path: this.#path }, () =>
      fs.ftruncateSync(fd, bytes),
    );
  }

  close(): Promise<void> {
    return this.#files.close(this.#file);
  }
}

/** The process that is doing something. */
const acting = new AsyncLocalStorage<ProcessFiles>();

/** What simulated processes get in place of functions of `node:fs/promises`. */
const REPLACEMENTS = {
  open: (files: ProcessFiles, path: string, flags?: string, mode?: number) =>
    files.open(path, flags, mode),
  rename: (files: ProcessFiles, from: string, to: string) =>
    files.do({ name: "rename", path: to }, () => fs.renameSync(from, to)),
  rm: (files: ProcessFiles, path: string, options?: fs.RmOptions) =>
    files.do({ name: "rm", path }, () => fs.rmSync(path, options)),
  readdir: (files: ProcessFiles, path: string) =>
    files.do({ name: "list", path }, () => fs.readdirSync(path)),
  stat: (files: ProcessFiles, path: string) => files.now(() => fs.statSync(path)),
  mkdir: (files: ProcessFiles, path: string) =>
    files.do({ name: "make", path }, () => fs.mkdirSync(path)),
  copyFile: (files: ProcessFiles, from: string, to: string) =>
    files.do({ name: "write", path: to }, () => fs.copyFileSync(from, to)),
} as const;

/** Runs a schedule whose processes see files by way of their {@link ProcessFiles}; for everybody else nothing changes. */
export async function withSimulatedFiles<Result>(run: () => Promise<Result>): Promise<Result> {
  const real = { ...promises };
  const replaced = Object.entries(REPLACEMENTS).map(([name, simulated]) => {
    const own = real[name as keyof typeof REPLACEMENTS] as (...args: unknown[]) => unknown;
    const act = simulated as (files: ProcessFiles, ...args: unknown[]) => unknown;
    const either = (...args: unknown[]): unknown => {
      const files = acting.getStore();
      return files === undefined ? own(...args) : act(files, ...args);
    };
    return [name, either] as const;
  });
  Object.assign(promises, Object.fromEntries(replaced));
  // Else modules that have imported them by their names keep the old ones.
  syncBuiltinESMExports();
  try {
    return await run();
  } finally {
    Object.assign(promises, real);
    syncBuiltinESMExports();
  }
}
