import type { Evaluation } from "./network.ts";

/** The progress of one trainer on the display. */
export interface TrainerProgress {
  readonly name: string;
  readonly state: "starting" | "training" | "killed" | "finished";
  readonly updates: number;
  /** Loss of its last batch; undefined before the first. */
  readonly loss: number | undefined;
}

/** The state of the training at one moment. */
export interface Progress {
  readonly elapsedMs: number;
  /** Updates that trainers know to be applied. */
  readonly updates: number;
  readonly updatesWanted: number;
  /** Score on the test images, with the weights on the server; undefined before the first. */
  readonly evaluation: Evaluation | undefined;
  readonly trainers: readonly TrainerProgress[];
}

/** Where a display writes; `process.stdout` is one. */
export interface DisplayStream {
  readonly isTTY?: boolean;
  readonly columns?: number;
  write(text: string): unknown;
}

const BAR_CHARACTERS = 24;
const PLAIN_INTERVAL_MS = 2_000;

/**
 * Prints the events of the run line by line. On a terminal the state of the training is redrawn
 * below them; elsewhere it is printed as a line every two seconds.
 */
export class Display {
  readonly #stream: DisplayStream;
  #drawn: readonly string[] = [];
  #plainAtMs = Number.NEGATIVE_INFINITY;

  constructor(stream: DisplayStream) {
    this.#stream = stream;
  }

  /** Prints an event. */
  tell(text: string): void {
    this.#stream.write(`${this.#erase()}${text}\n${this.#drawn.join("")}`);
  }

  /** Shows the state of the training. */
  show(progress: Progress): void {
    if (this.#stream.isTTY) {
      const erase = this.#erase();
      const columns = this.#stream.columns ?? 80;
      // A line that wraps could not be erased: its rows are not counted.
      this.#drawn = statusLines(progress).map((line) => `${line.slice(0, columns - 1)}\n`);
      this.#stream.write(`${erase}${this.#drawn.join("")}`);
    } else if (progress.elapsedMs - this.#plainAtMs >= PLAIN_INTERVAL_MS) {
      this.#plainAtMs = progress.elapsedMs;
      this.#stream.write(`${plainLine(progress)}\n`);
    }
  }

  /** Leaves the last state on the screen; later events follow it. */
  finish(): void {
    this.#drawn = [];
  }

  #erase(): string {
    return this.#drawn.length === 0 ? "" : `\x1b[${this.#drawn.length}A\x1b[J`;
  }
}

/** Writes the state of the training as the lines of a terminal. */
export function statusLines(progress: Progress): string[] {
  const { updates, updatesWanted, evaluation, trainers } = progress;
  const busiest = Math.max(1, ...trainers.map((trainer) => trainer.updates));
  return [
    `  updates    ${bar(updates / updatesWanted)} ${amount(updates)} of ${amount(updatesWanted)}, ${seconds(progress.elapsedMs)}`,
    `  accuracy   ${bar(evaluation?.accuracy ?? 0)} ${percent(evaluation)}, loss ${decimal(evaluation?.loss)}`,
    ...trainers.map(
      (trainer) =>
        `  ${trainer.name.padEnd(10)} ${bar(trainer.updates / busiest)} ${amount(trainer.updates)} updates, loss ${decimal(trainer.loss)}${
          trainer.state === "training" ? "" : `, ${trainer.state}`
        }`,
    ),
  ];
}

/** Writes the state of the training as one line. */
export function plainLine(progress: Progress): string {
  const { evaluation, trainers } = progress;
  const training = trainers.filter((trainer) => trainer.state === "training").length;
  return [
    seconds(progress.elapsedMs).padStart(8),
    `${amount(progress.updates).padStart(6)} updates`,
    `loss ${decimal(evaluation?.loss)}`,
    `accuracy ${percent(evaluation)}`,
    `trainers ${training}`,
  ].join("  ");
}

/** Writes milliseconds as `12.3 s`. */
export function seconds(durationMs: number): string {
  return `${(durationMs / 1000).toFixed(1)} s`;
}

/** Writes a whole number as `1,234`. */
export function amount(count: number): string {
  return count.toLocaleString("en-US");
}

/** Writes an accuracy as `95.3 %`. */
export function percent(evaluation: Evaluation | undefined): string {
  return evaluation === undefined ? "–" : `${(evaluation.accuracy * 100).toFixed(1)} %`;
}

function decimal(value: number | undefined): string {
  return value === undefined ? "–" : value.toFixed(3);
}

function bar(share: number): string {
  const filled = Math.round(Math.min(1, Math.max(0, share)) * BAR_CHARACTERS);
  return "█".repeat(filled) + "░".repeat(BAR_CHARACTERS - filled);
}
