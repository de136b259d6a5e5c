import type { Command } from "commander";
import type { OutputFlags } from "../output/output.ts";
import {
  addConnectionOptions,
  addJobOption,
  addOutputOptions,
  type ConnectionFlags,
} from "./connection-options.ts";
import { parseTimeout } from "./parse-values.ts";

/** Flags of a command that reads the history of a job. */
export interface HistoryFlags extends ConnectionFlags, OutputFlags {
  readonly job: string;
  /** Directory of an archive, or a recorded file. */
  readonly archive?: string;
  /** False with `--no-broker`. */
  readonly broker: boolean;
  readonly fromFile?: string;
  /** Longest wait for one answer of the broker, in milliseconds. */
  readonly timeout?: number;
}

/** Adds the flags of a command that reads the history of a job. */
export function addHistoryOptions(command: Command): Command {
  const placed = addHistoryPlaceOptions(
    addOutputOptions(addJobOption(addConnectionOptions(command))),
  );
  return placed.option(
    "--timeout <duration>",
    "longest wait for one answer of the broker: 500ms, 5s, 2m (default: 5s)",
    parseTimeout,
  );
}

/** Adds the flags that say where a history is, besides the broker. */
export function addHistoryPlaceOptions(command: Command): Command {
  return command
    .option("--archive <path>", "read an archive (see pserver archive) and the broker as one")
    .option("--no-broker", "with --archive: read the archive alone")
    .option(
      "--from-file <file>",
      "read a file of pserver record, as an archive without the broker",
    );
}

/** Adds `--param`, which may be repeated. */
export function addParamOption(command: Command): Command {
  return command.option(
    "--param <name>",
    "only this parameter; may be repeated",
    (name: string, before: readonly string[] = []) => [...before, name],
  );
}

/** Lines of help about the points that commands take. */
export const POINT_HELP: readonly string[] = [
  "  now, start (of what is kept), a time (2026-11-23T04:12:07Z, 2026-11-23 04:12, 10m ago), a position",
  "  (SHARD:SEQ, or SHARD:SEQ@GENERATION), step:N, an update (TRAINER/SESSION:NUMBER, with @SHARD if",
  "  several shards have that number) or mark:NAME. Shards have no common order: a time cuts each of",
  "  them after what it had stored by then; a position or an update cuts its own shard right after it,",
  "  and the others at its time. The command says which cut it understood.",
];

/** Lines of help about who may read a history. */
export const HISTORY_PERMISSIONS: readonly string[] = [
  "  The user needs the JetStream API, like the user that hosts store with. No host has to run.",
];
