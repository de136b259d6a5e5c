import { join } from "node:path";
import { setTimeout as delay } from "node:timers/promises";
import { ensureError } from "../../../protocol/errors.ts";
import type { LinePrinter, TrainerOutput } from "../trainer-output.ts";
import { GrowingFile } from "./growing-file.ts";
import { logNames } from "./log-names.ts";

/** Dependencies of {@link TaskOutput}. */
export interface TaskOutputOptions {
  readonly logDirectory: string;
  readonly instances: number;
  readonly output: TrainerOutput;
  readonly onMessage: (text: string) => void;
}

/** A stream of a trainer, as the file that its task writes. */
interface TaskStream {
  readonly path: string;
  readonly file: GrowingFile;
  readonly lines: LinePrinter;
}

const POLL_MS = 1_000;

/** Prints the files of a batch job's tasks while they are written. Memory holds one chunk of one file. */
export class TaskOutput {
  readonly #onMessage: (text: string) => void;
  readonly #finishing = new AbortController();
  #following: Promise<void> = Promise.resolve();
  #streams: readonly TaskStream[];
  #turn: Promise<void> = Promise.resolve();

  private constructor(streams: readonly TaskStream[], onMessage: (text: string) => void) {
    this.#streams = streams;
    this.#onMessage = onMessage;
  }

  /** Prints what the tasks write from now on. */
  static follow({ logDirectory, instances, output, onMessage }: TaskOutputOptions): TaskOutput {
    const ranks = Array.from({ length: instances }, (_, rank) => rank);
    const streams = ranks.flatMap((rank) =>
      (["stdout", "stderr"] as const).map((name) => {
        const path = join(logDirectory, logNames[name](rank));
        return { path, file: new GrowingFile(path), lines: output.printer(rank, name) };
      }),
    );
    const task = new TaskOutput(streams, onMessage);
    task.#following = task.#follow();
    return task;
  }

  /** Settles when everything written so far is printed. */
  printWritten(): Promise<void> {
    this.#turn = this.#turn.then(() => this.#printNew());
    return this.#turn;
  }

  /** Prints the rest, including last lines without an end, after all tasks have ended. */
  async finish(): Promise<void> {
    this.#finishing.abort();
    await this.#following;
    await this.printWritten();
    for (const { lines } of this.#streams) await lines.end();
    this.#streams = [];
  }

  async #follow(): Promise<void> {
    const { signal } = this.#finishing;
    while (!signal.aborted) {
      await this.printWritten();
      await delay(POLL_MS, undefined, { signal }).catch(() => {});
    }
  }

  async #printNew(): Promise<void> {
    for (const stream of this.#streams) {
      try {
        await stream.file.readNew((bytes) => stream.lines.print(bytes));
      } catch (error) {
        // Training goes on without this output.
        this.#streams = this.#streams.filter((each) => each !== stream);
        this.#onMessage(
          `${stream.path} cannot be followed any longer: ${ensureError(error).message}`,
        );
      }
    }
  }
}
