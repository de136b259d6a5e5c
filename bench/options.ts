import { parseArgs } from "node:util";
import { MODELS, type NamedModel } from "./models.ts";

/** The measurements of a run, and their lengths and sizes. */
export interface BenchOptions {
  readonly quick: boolean;
  readonly json: boolean;
  /** Only measurements whose name holds one of these words; all if there are none. */
  readonly only: readonly string[];
  /** Where every process writes a CPU profile. */
  readonly profileDirectory: string | undefined;
  readonly rounds: number;
  /** How long each measurement sends, and how long it sends before that without being counted. */
  readonly durationMs: number;
  readonly warmUpMs: number;
  /** How long new processes do each kind of work before anything is measured. */
  readonly compileMs: number;
  readonly latencyMs: number;
  readonly models: readonly NamedModel[];
  /** How many trainers work at the same time. */
  readonly trainers: readonly number[];
  /** Sizes of the models whose host's memory is measured. */
  readonly memoryModelBytes: readonly number[];
  /** Lengths of the journals of jobs for which the memory of commands is measured. */
  readonly journalBytes: readonly number[];
  /** Sizes of the parameters that the rules are measured on. */
  readonly ruleBytes: readonly number[];
}

const HELP = `usage: make bench BENCH='[--quick] [--only NAME]… [--rounds N] [--json] [--profile DIR]'

  --quick        under two minutes: one round, short measurements, fewer sizes
  --only NAME    only measurements whose name holds NAME, in whole words; may be repeated.
                 Names are such as "file, 1 MiB, push sgd, 3 trainers", "c, 10 × 4 MB, pull, 1 trainer",
                 "step of 16 × 64 KiB, file", "scale", "python", "archiving", "slow link", "slow link steps", "replay", "tape", "log from the tape", "debugger memory", "failover", "kernels", "rules", "sparse push", "host memory"
  --rounds N     how often everything is measured (3; with --quick 1)
  --json         results as one JSON object
  --profile DIR  every process leaves a CPU profile in DIR`;

/** Reads the command line. @throws an `Error` for what it does not know. */
export function readOptions(args: readonly string[]): BenchOptions | { readonly help: string } {
  const { values } = parseArgs({
    args: [...args],
    options: {
      quick: { type: "boolean", default: false },
      json: { type: "boolean", default: false },
      only: { type: "string", multiple: true, default: [] },
      rounds: { type: "string" },
      profile: { type: "string" },
      help: { type: "boolean", short: "h", default: false },
    },
  });
  if (values.help) return { help: HELP };
  const { quick, json, only } = values;
  const rounds = readRounds(values.rounds ?? (quick ? "1" : "3"));
  return {
    quick,
    json,
    only,
    rounds,
    profileDirectory: values.profile,
    durationMs: quick ? 600 : 2_500,
    warmUpMs: quick ? 150 : 1_000,
    compileMs: quick ? 500 : 3_000,
    latencyMs: quick ? 300 : 1_500,
    models: quick ? MODELS.filter((model) => model.quick) : MODELS,
    trainers: quick ? [1] : [1, 3],
    memoryModelBytes: quick ? [40e6] : [40e6, 400e6],
    journalBytes: quick ? [1e8] : [1e8, 1e9],
    ruleBytes: quick ? [1024 ** 2] : [1024 ** 2, 64 * 1024 ** 2],
  };
}

/** Reads a number of rounds. @throws an `Error` unless it is a whole number of 1 or more. */
export function readRounds(value: string): number {
  const rounds = Number(value);
  if (!Number.isSafeInteger(rounds) || rounds < 1) {
    throw new Error(`--rounds: expected a whole number of 1 or more; received ${value}`);
  }
  return rounds;
}

/** Whether a measurement of this name is asked for: whether it holds one of the words. */
export function isWanted({ only }: BenchOptions, name: string): boolean {
  return only.length === 0 || only.some((part) => wordsOf(name).includes(wordsOf(part)));
}

/**
 * Writes a text with one blank around each of its words, so that a word is not found within
 * another.
 */
function wordsOf(text: string): string {
  return ` ${text.replaceAll(/[,\s]+/g, " ").trim()} `;
}
