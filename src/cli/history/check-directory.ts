import {
  type ArchiveFindings,
  checkArchive,
  type TapeFindings,
} from "../../history/archive/check-archive.ts";
import type { JournalSpan } from "../../history/source.ts";
import { showPosition } from "../../protocol/messages/position.ts";
import type { CliContext } from "../context.ts";
import { formatCount, formatNumber } from "../output/amounts.ts";
import type { TextFormat } from "../output/colors.ts";
import type { Output } from "../output/output.ts";
import { formatTable, type Shrink } from "../output/table.ts";
import { EXIT } from "../report-error.ts";

/** Reads a whole archive and shows what it has; a damaged file makes the exit code 1. */
export async function checkDirectory(
  context: CliContext,
  output: Output,
  directory: string,
): Promise<void> {
  const findings = await output.progress("reading").during(checkArchive(directory, context.signal));
  const { shards, damage } = findings;
  if (output.json) {
    output.value({ directory, shards, damage: damage.map((error) => error.toWire()) });
  } else {
    output.lines(describeArchive(findings, output));
    for (const { message } of damage) output.warning(message);
    output.message(`${formatCount(damage.length, "damaged file")} in ${directory}`);
  }
  if (damage.length > 0) context.setExitCode(EXIT.failure);
}

/** Writes the contents of an archive as a table. */
function describeArchive({ shards }: ArchiveFindings, format: TextFormat): string[] {
  const columns = [
    { title: "SHARD", align: "right" },
    { title: "RECORDS" },
    { title: "MISSING" },
    { title: "SNAPSHOTS", align: "right" },
    { title: "TAPE" },
  ] as const;
  const rows = shards.map(({ shard, spans, missing, snapshots, tape }) => [
    String(shard),
    showSpans(shard, spans),
    showSpans(shard, missing),
    String(snapshots),
    showTape(tape),
  ]);
  const shrinks: Shrink[] = [
    { kind: "wrap", column: "RECORDS", to: 24 },
    { kind: "wrap", column: "MISSING", to: 16 },
    { kind: "wrap", column: "TAPE", to: 12 },
  ];
  return formatTable(columns, rows, format, shrinks);
}

function showTape({ messages, missing }: TapeFindings): string {
  if (messages === 0) return "none";
  const lacks = missing === 0 ? "" : `, lacks ${formatNumber(missing)}`;
  return `${formatCount(messages, "message")}${lacks}`;
}

function showSpans(shard: number, spans: readonly JournalSpan[]): string {
  if (spans.length === 0) return "none";
  const show = ({ generation, firstSeq, lastSeq }: JournalSpan): string =>
    `${showPosition(shard, { generation, seq: firstSeq })} to ${lastSeq}`;
  return spans.map(show).join(", ");
}
