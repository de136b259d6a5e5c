import { asMap, flagField, textField } from "../protocol/fields.ts";
import {
  checkJobName,
  ensureError,
  type Fields,
  mismatch,
  PserverError,
} from "../protocol/index.ts";
import type { HttpStream, ServerEvent } from "./http-server.ts";

/** Lines of one command that are kept for whoever follows it; a command that prints more shows its last ones. */
const LINES_MAX = 2_000;

/** A command that has been started. */
export interface StartedCommand {
  /** Settles with its exit code when it has ended. */
  readonly ended: Promise<number>;
  /** Asks it to stop in order; settles when it has ended. */
  stop(): Promise<void>;
}

/** What a command prints for people: a line, or how far it is, which replaces what it said of that before. */
export interface CommandLine {
  readonly kind: "message" | "progress";
  readonly text: string;
}

/** Starts the command `pserver` with these arguments, for the broker whose jobs are shown. */
export type StartCommand = (
  args: readonly string[],
  onLine: (line: CommandLine) => void,
) => StartedCommand;

/**
 * Forks and rewinds jobs for the page, by the commands, each in a process of its own: what it takes of memory and
 * processor time, and how it ends, concerns nothing that serves. One runs at a time. It runs to its end also if nobody
 * follows it any more.
 */
export class JobChanges {
  readonly #start: StartCommand;
  #running: RunningCommand | undefined;

  constructor(start: StartCommand) {
    this.#start = start;
  }

  /**
   * Starts a change of a job, `fork` or `rewind`, and returns what it prints as events: `line` for each
   * {@link CommandLine}, and at last `end` with its exit code.
   * @throws BAD_VALUE, BAD_NAME for a request that is not valid; BUSY while another change runs.
   */
  begin(job: string, what: "fork" | "rewind", change: unknown): HttpStream {
    const args = argumentsOf(job, what, change);
    if (this.#running !== undefined) {
      const text = `a change of job ${this.#running.job} by this server has not ended; wait for it`;
      throw new PserverError("BUSY", text);
    }
    const running = new RunningCommand(job);
    this.#running = running;
    running.begin(
      this.#start(args, (line) => running.add(line)),
      () => {
        this.#running = undefined;
      },
    );
    return { open: (signal) => running.events(signal) };
  }

  /** Stops what runs, in order, and waits for its end. */
  async close(): Promise<void> {
    await this.#running?.stop();
  }
}

/** A command that runs, and the lines that it has printed. */
class RunningCommand {
  readonly job: string;
  #command: StartedCommand | undefined;
  #lines: CommandLine[] = [];
  #dropped = 0;
  #exitCode: number | undefined;
  #wake: () => void = () => undefined;

  constructor(job: string) {
    this.job = job;
  }

  begin(command: StartedCommand, onEnd: () => void): void {
    this.#command = command;
    void command.ended.then((exitCode) => {
      this.#exitCode = exitCode;
      onEnd();
      this.#wake();
    });
  }

  add(line: CommandLine): void {
    const last = this.#lines.at(-1);
    // Only the newest word on how far it is matters to whoever has not read the one before.
    if (line.kind === "progress" && last?.kind === "progress") this.#lines.pop();
    this.#lines.push(line);
    if (this.#lines.length > LINES_MAX) {
      this.#lines.shift();
      this.#dropped += 1;
    }
    this.#wake();
  }

  async stop(): Promise<void> {
    await this.#command?.stop();
  }

  /** Yields what has been printed and is printed until it ends, or the signal is aborted. For one reader. */
  async *events(signal: AbortSignal): AsyncGenerator<ServerEvent, void, undefined> {
    const wake = (): void => this.#wake();
    signal.addEventListener("abort", wake, { once: true });
    try {
      while (!signal.aborted) {
        for (let line = this.#lines.shift(); line !== undefined; line = this.#lines.shift()) {
          yield { event: "line", data: line };
        }
        if (this.#exitCode !== undefined) {
          yield { event: "end", data: { exitCode: this.#exitCode, dropped: this.#dropped } };
          return;
        }
        await new Promise<void>((resolve) => (this.#wake = resolve));
      }
    } finally {
      signal.removeEventListener("abort", wake);
    }
  }
}

/** Characters of a point at most. */
const POINT_LENGTH_MAX = 256;

/** @throws BAD_VALUE, BAD_NAME for a request that is not valid. */
function argumentsOf(job: string, what: "fork" | "rewind", change: unknown): string[] {
  try {
    const fields = asMap(change, "the body");
    return what === "fork" ? forkArguments(job, fields) : rewindArguments(job, fields);
  } catch (thrown) {
    const error = ensureError(thrown);
    if (error.code !== "BAD_MESSAGE") throw error;
    throw new PserverError("BAD_VALUE", error.message, error.details, { cause: error });
  }
}

function forkArguments(job: string, fields: Fields): string[] {
  const at = textField(fields, "at", POINT_LENGTH_MAX);
  const as = checkJobName(textField(fields, "as"));
  return ["fork", `--job=${job}`, `--at=${at}`, `--as=${as}`];
}

/** `{to, dryRun: true}` asks what would be given up; `{to}`, `{complete}` and `{drop}` need the job's name as `confirm`. */
function rewindArguments(job: string, fields: Fields): string[] {
  const [complete, drop] = [flagField(fields, "complete"), flagField(fields, "drop")];
  const to = fields["to"] === undefined ? undefined : textField(fields, "to", POINT_LENGTH_MAX);
  const wishes = [
    ...(to === undefined ? [] : [`--to=${to}`]),
    ...(complete ? ["--complete"] : []),
    ...(drop ? ["--drop"] : []),
  ];
  const [wish] = wishes;
  if (wish === undefined || wishes.length > 1) {
    const received = wishes.length === 0 ? "none" : "several";
    throw mismatch("BAD_VALUE", "the body", "one of to, complete and drop", received);
  }
  if (flagField(fields, "dryRun")) return ["rewind", `--job=${job}`, wish, "--dry-run"];
  if (fields["confirm"] === job) return ["rewind", `--job=${job}`, wish, "--yes"];
  throw mismatch("BAD_VALUE", "confirm", `the job's name, ${job}`, "another text");
}
