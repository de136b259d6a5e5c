import type { Command } from "commander";
import type { Statistics } from "../../../actors/fold/statistics.ts";
import type { UpdateEvent } from "../../../actors/journal/describe-record.ts";
import type { ExaminedBlock, ExaminedRecord } from "../../../history/examine-record.ts";
import { parsePoint } from "../../../history/points.ts";
import { dateTimeText } from "../../../history/reports/update-entry.ts";
import { PserverError, visible } from "../../../protocol/errors.ts";
import { addHelp, type CliContext, openOutput } from "../../context.ts";
import {
  blockText,
  bytesText,
  guardText,
  noteText,
  outcomeText,
  placeText,
  senderText,
  verbText,
} from "../../history/event-text.ts";
import { compactNumber } from "../../history/numbers.ts";
import { withHistory } from "../../history/with-history.ts";
import { addHistoryOptions, type HistoryFlags } from "../../options/history-options.ts";
import { formatCount } from "../../output/amounts.ts";
import type { TextFormat, TextStyle } from "../../output/colors.ts";
import { titledLines } from "../../output/wrap.ts";

/** Adds the command `pserver show`, which prints everything about one update. */
export function registerShow(program: Command, context: CliContext): void {
  const command = program
    .command("show")
    .summary("show all about one update")
    .description("show everything about one update: what it held, and what it did to its blocks")
    .argument("<update>", "TRAINER/SESSION:NUMBER (@SHARD behind it), or SHARD:SEQ (@GENERATION)");
  addHistoryOptions(command).action((update: string, flags: HistoryFlags) =>
    runShow(context, update, flags),
  );
  addHelp(command, {
    "What it does": [
      "  The shard is rebuilt right before the record, so that the values of the blocks can be told",
      "  before and after it. In a job with steps, those after it include the step that it closed.",
    ],
    "With --json": [
      '  {"updates":[…],"blocks":[{"parameter","block","shape","before":{"norm",…},"after",…}],',
      '  "subject","payloadBytes"}; an update is as in "pserver log --json".',
    ],
    Examples: ["  pserver show trainer-2/8:1042", "  pserver show 3:1200 --json"],
  });
}

async function runShow(context: CliContext, update: string, flags: HistoryFlags): Promise<void> {
  const output = openOutput(context, flags);
  const point = parsePoint(update, Date.now());
  if (point.kind !== "position" && point.kind !== "update") {
    throw new PserverError(
      "BAD_VALUE",
      `expected one update, TRAINER/SESSION:NUMBER or SHARD:SEQ; received ${JSON.stringify(update)}`,
      { received: update },
    );
  }
  const { signal } = context;
  // Loaded here, so that other commands start faster.
  const { examineRecord } = await import("../../../history/examine-record.ts");
  const { findRecord } = await import("../../../history/examine-record.ts");
  const record = await withHistory(context, flags, async ({ source }) =>
    examineRecord(source, await findRecord(source, point, signal), signal),
  );
  if (output.json) {
    const { examinedRecord } = await import("../../../history/reports/json-entries.ts");
    output.value(examinedRecord(record));
  } else output.lines(describe(record, output));
}

function describe({ record, events, blocks }: ExaminedRecord, format: TextFormat): string[] {
  const row = (title: string, text: string, style?: TextStyle): string[] =>
    titledLines(title, text, format, style);
  const [first] = events;
  if (first === undefined) return [];
  const entries = first.entries === 1 ? "" : `, a batch of ${formatCount(first.entries, "block")}`;
  const lines = [
    format.paint("strong", `record ${placeText({ ...first, entries: 1 })}${entries}`),
    ...row("time", dateTimeText(record.timeMs)),
    ...row("from", visible(senderText(first))),
    ...row("outcome", visible(outcomeText(first)), styleOf(events)),
    ...row("subject", visible(record.subject)),
    ...row("payload", `${record.payload.length} bytes`),
  ];
  for (const event of events) lines.push(...describeEvent(event, blocks, row));
  return lines;
}

function styleOf(events: readonly UpdateEvent[]): TextStyle {
  if (events[0]?.outcome.kind === "rejected") return "fail";
  if (events.some(({ guard }) => guard !== undefined)) return "warn";
  return events[0]?.outcome.kind === "applied" ? "ok" : "fail";
}

function describeEvent(
  event: UpdateEvent,
  blocks: readonly ExaminedBlock[],
  row: (title: string, text: string) => string[],
): string[] {
  const { block: change, step, note } = event;
  const lines = ["", ...row("update", visible(`${verbText(event)} ${blockText(event)}`.trim()))];
  if (note !== undefined) lines.push(...row("note", visible(noteText(note))));
  if (step !== undefined) lines.push(...row("step", String(step)));
  if (event.guard !== undefined) lines.push(...row("guard", guardText(event.guard)));
  if (change === undefined) return lines;
  const { dtype, encoding, elements, statistics, version, behind } = change;
  const type = encoding === undefined ? dtype : `${dtype} as ${encoding}`;
  lines.push(...row("elements", `${elements} of ${type}, ${bytesText(event)}`));
  if (statistics !== undefined) lines.push(...row("", statisticsText(statistics, elements)));
  if (version !== undefined) lines.push(...row("version", String(version)));
  if (behind !== undefined) lines.push(...row("behind", formatCount(behind, "version")));
  const block = blocks.find(
    ({ parameter, index }) => parameter === change.parameter && index === change.index,
  );
  return block === undefined ? lines : [...lines, ...describeBlock(block, row)];
}

function describeBlock(
  { shape, start, count, epoch, config, before, after, changedElements }: ExaminedBlock,
  row: (title: string, text: string) => string[],
): string[] {
  return [
    ...row(
      "block",
      `elements ${start} to ${start + count - 1} of shape [${shape.join(", ")}], epoch ${epoch}`,
    ),
    ...row("config", visible(JSON.stringify(config))),
    ...row("before", before === undefined ? "not there" : statisticsText(before, count)),
    ...row("after", statisticsText(after, count)),
    ...row("changed", `${changedElements} of ${formatCount(count, "element")}`),
  ];
}

function statisticsText(statistics: Statistics, elements: number): string {
  const { norm, min, max, mean, zeros, nonFinite } = statistics;
  const rest = nonFinite === 0 ? "" : `, ${nonFinite} not finite`;
  const numbers = { norm, min, max, mean };
  const shown = Object.entries(numbers).map(([name, value]) => `${name} ${compactNumber(value)}`);
  return `${shown.join(", ")}, ${zeros} of ${elements} zero${rest}`;
}
