import { Worker } from "node:worker_threads";
import { ensureError, errorFromWire, PserverError } from "../../protocol/errors.ts";
import { errnoCode } from "../../system/file-errors.ts";
import { badFile } from "../file-text.ts";
import type { FromHdf5, Hdf5Setup, ToHdf5 } from "./thread-messages.ts";

/**
 * Longest time of the library for one message: enough for a slow disk, and an end for a file that
 * makes it loop.
 */
const STEP_MS = 120_000;

/** Longest time for listing a file: some milliseconds for each of up to 100,000 datasets. */
const LIST_MS = 600_000;

/** Memory for descriptions of datasets; elements and the library's own memory are not in it. */
const HEAP_MB_MAX = 1_024;

interface Waiting {
  readonly resolve: (answer: FromHdf5) => void;
  readonly reject: (error: PserverError) => void;
  readonly timer: NodeJS.Timeout;
}

/**
 * A thread for the HDF5 library, which blocks on the disk and frees its memory only when its thread
 * ends. Answers arrive in the order of the questions.
 */
export class Hdf5Thread {
  readonly #file: string;
  readonly #worker: Worker;
  readonly #waiting: Waiting[] = [];
  #ended: PserverError | undefined;

  private constructor(file: string, worker: Worker) {
    this.#file = file;
    this.#worker = worker;
  }

  /** Starts a thread. The descriptor in `setup` must stay open until the thread is closed. */
  static start(setup: Hdf5Setup): Hdf5Thread {
    const worker = new Worker(new URL("./hdf5-worker.js", import.meta.url), {
      workerData: setup,
      resourceLimits: { maxOldGenerationSizeMb: HEAP_MB_MAX },
    });
    const thread = new Hdf5Thread(setup.file, worker);
    worker.on("message", (answer: FromHdf5) => thread.#answered(answer));
    worker.on("error", (error) => thread.#end(crashed(setup.file, error)));
    worker.on("exit", () => thread.#end(closed(setup.file)));
    return thread;
  }

  /**
   * Sends one message and returns its answer.
   * @throws the error in the answer; BAD_FILE after 120 s, or 10 minutes for `list`; CLOSED.
   */
  async ask(message: ToHdf5): Promise<FromHdf5> {
    if (this.#ended !== undefined) throw this.#ended;
    const answer = await new Promise<FromHdf5>((resolve, reject) => {
      const waitMs = message.type === "list" ? LIST_MS : STEP_MS;
      const timer = setTimeout(() => this.#tooSlow(message.type, waitMs), waitMs);
      this.#waiting.push({ resolve, reject, timer });
      this.#worker.postMessage(message, transferable(message));
    });
    if (answer.type === "error") throw errorFromWire(answer.error);
    return answer;
  }

  /** Ends the thread at once; messages under way fail with CLOSED. May be called again. */
  async close(): Promise<void> {
    this.#end(closed(this.#file));
    await this.#worker.terminate();
  }

  #answered(answer: FromHdf5): void {
    const waiting = this.#waiting.shift();
    if (waiting === undefined) return;
    clearTimeout(waiting.timer);
    waiting.resolve(answer);
  }

  #tooSlow(step: string, waitMs: number): void {
    const expected = `the HDF5 library to take at most ${waitMs} ms`;
    this.#end(badFile(this.#file, step, expected, "no answer"));
    void this.#worker.terminate();
  }

  #end(error: PserverError): void {
    this.#ended ??= error;
    for (const { reject, timer } of this.#waiting.splice(0)) {
      clearTimeout(timer);
      reject(this.#ended);
    }
  }
}

/** Elements move to the thread; those of a file's chunk are in a buffer of their own. */
function transferable(message: ToHdf5): ArrayBuffer[] {
  return message.type === "write" ? [message.data.buffer as ArrayBuffer] : [];
}

function crashed(file: string, error: Error): PserverError {
  if (errnoCode(error) !== "ERR_WORKER_OUT_OF_MEMORY") return ensureError(error);
  return badFile(file, "descriptions", `at most ${HEAP_MB_MAX} MiB of memory`, "more", error);
}

function closed(file: string): PserverError {
  return new PserverError("CLOSED", `${file} has been closed`, { path: file });
}
