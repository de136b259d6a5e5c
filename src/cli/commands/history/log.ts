import { type Command, Option } from "commander";
import type { UpdateEvent } from "../../../actors/journal/describe-record.ts";
import { updateEntry } from "../../../history/reports/update-entry.ts";
import { PserverError } from "../../../protocol/errors.ts";
import { addHelp, type CliContext, openOutput } from "../../context.ts";
import { CSV_COLUMNS, csvLine, UpdateLines } from "../../history/update-columns.ts";
import {
  addRangeOptions,
  type RangeFlags,
  selectUpdates,
  withHistory,
} from "../../history/with-history.ts";
import { addHistoryOptions, type HistoryFlags, POINT_HELP } from "../../options/history-options.ts";
import { wholeNumber } from "../../options/parse-values.ts";
import type { Output } from "../../output/output.ts";
import { visibleJson } from "../../output/wrap.ts";

/** Lines that `--last` keeps until the end of the history is reached, some 1 KiB each. */
const LAST_MAX = 100_000;

/** Flags of `pserver log`. */
interface LogFlags extends HistoryFlags, RangeFlags {
  readonly last?: number;
  readonly follow?: boolean;
  readonly csv?: boolean;
}

/** Adds the command `pserver log`, which prints every update of a job, one a line. */
export function registerLog(program: Command, context: CliContext): void {
  const command = program
    .command("log")
    .summary("list the updates and notes")
    .description("list what happened: one line for each update, notes in their places");
  addRangeOptions(command)
    .option("-n, --last <count>", "only the last lines of these", wholeNumber(1, LAST_MAX))
    .option("-f, --follow", "go on with what comes, until Ctrl-C")
    .addOption(new Option("--csv", "print comma-separated values").conflicts("json"));
  addHistoryOptions(command).action((flags: LogFlags) => runLog(context, flags));
  addHelp(command, {
    Points: POINT_HELP,
    Columns: [
      "  RECORD is SHARD:SEQ, with @GENERATION of the shard's journal unless it is the first and .ENTRY",
      "  in a batch. TRAINER is ID/SESSION:NUMBER. NORM, MIN, MAX, MEAN and ZEROS are of the elements",
      "  that were sent. BEHIND: versions that the block had gone on since the values that a gradient",
      "  was computed from. Narrow terminals leave columns out; --json and --csv have all.",
    ],
    Order: [
      "  Lines come in the order of the times at which the broker stored the records. Records of one",
      "  shard are in the order of its journal; shards have no other order among each other.",
    ],
    "With --json": [
      '  one object a line: {"time","shard","generation","seq","entry","trainer","session","number",',
      '  "verb","parameter","block","op","elements","bytes","norm","min","max","mean","zeros",',
      '  "nonFinite","version","behind","outcome",…}; zeros and nonFinite are counts; what is not',
      '  known is left out. A note has "note":{…}, a rejection "code" and "message",',
      '  a record that could not be described "undescribed":"CODE: text", and only place, sender and outcome.',
    ],
    "Exit code": [
      "  1 if the tape lacks lines of records that the journal lacks, too, or cannot give: each range of",
      "  them is a warning, TAPE_DAMAGED, and a damaged file of an archive's tape is one, BAD_ARCHIVE.",
      "  What is on either side is printed. Others as for every command.",
    ],
    Examples: [
      "  pserver log --since '10m ago'",
      "  pserver log --param fc1 --trainer trainer-2 --since 3:1200 --until now",
      "  pserver log --last 20 --follow",
      "  pserver log --follow --json | grep '\"rejected\"'",
    ],
  });
}

async function runLog(context: CliContext, flags: LogFlags): Promise<void> {
  checkFollow(flags);
  const output = openOutput(context, flags);
  const { signal } = context;
  const { follow = false, last } = flags;
  await withHistory(context, flags, async ({ source }) => {
    const how = { signal, follow, ...(last === undefined ? {} : { last }) };
    const updates = await selectUpdates(context, output, source, flags, how);
    const printer = printerOf(output, flags);
    await output.stream(printer.titles, signal);
    try {
      for await (const events of updates) {
        if (events.length > 0) await output.stream([printer.text(events)], signal);
      }
    } catch (error) {
      // Ctrl-C is how following ends.
      if (!(signal.aborted && follow)) throw error;
    }
  });
}

/** @throws BAD_VALUE if updates are to be followed where none come. */
function checkFollow({ follow, broker, fromFile }: LogFlags): void {
  if (follow !== true || (broker && fromFile === undefined)) return;
  const without = fromFile === undefined ? "--no-broker" : "--from-file";
  throw new PserverError("BAD_VALUE", `--follow: expected no ${without} with it: nothing comes`);
}

/** How events are printed. */
interface EventPrinter {
  /** Text that is printed before the first event. */
  readonly titles: readonly string[];
  text(events: readonly UpdateEvent[]): string;
}

function printerOf(output: Output, { csv }: LogFlags): EventPrinter {
  const lines = (made: (event: UpdateEvent) => string) => (events: readonly UpdateEvent[]) =>
    events.map((event) => `${made(event)}\n`).join("");
  if (output.json) return { titles: [], text: lines((event) => visibleJson(updateEntry(event))) };
  if (csv === true) return { titles: [`${CSV_COLUMNS.join(",")}\n`], text: lines(csvLine) };
  const table = UpdateLines.of(output);
  return {
    titles: [`${table.titles()}\n`],
    text: (events) => table.text(events),
  };
}
