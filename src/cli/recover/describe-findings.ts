import type {
  FoundArchive,
  FoundJournal,
  FoundRest,
  FoundSnapshot,
  RecoveryChoice,
  ShardFindings,
} from "../../actors/recovery/findings.ts";
import { visible } from "../../protocol/visible.ts";
import { formatBytes, formatCount, formatRecords, nameRecords } from "../output/amounts.ts";
import type { Look, Style } from "../output/colors.ts";
import { textWidth } from "../output/text-width.ts";
import { hangingLines, titledLines, titleHead } from "../output/wrap.ts";

/** Most snapshots, gaps and trainers in a list; `--json` has all. */
const LISTED_MAX = 8;

/** Findings about a stopped shard, for people. */
export function describeFindings(findings: ShardFindings, look: Look): string[] {
  const { paint, width } = look;
  const { shard, error, snapshots, journal, archive, rest, lastKnownSeq, generation, choices } =
    findings;
  const row = (title: string, text: string, style?: Style): string[] =>
    titledLines(title, text, look, style);
  const lines = [
    ...hangingLines(
      "",
      `shard ${shard} ${paint("fail", "has stopped")}: ${error?.code}: ${visible(error?.message ?? "")}`,
      width,
    ),
    ...row("journal", describeJournal(journal)),
    ...gapLines(journal).flatMap((text) => row("", text)),
    ...changedLines(journal).flatMap((text) => row("", text)),
    ...row("existed", `record ${lastKnownSeq} of generation ${generation} is the last one known`),
  ];
  if (snapshots.length === 0) lines.push(...row("snapshots", "none"));
  for (const [i, snapshot] of snapshots.slice(0, LISTED_MAX).entries()) {
    lines.push(...row(i === 0 ? "snapshots" : "", describeSnapshot(snapshot)));
  }
  if (rest !== undefined) lines.push(...row("failed", describeRest(rest)));
  if (archive !== undefined) lines.push(...row("archive", describeArchive(archive)));
  if (choices.length === 0) {
    const text =
      "nothing of it can be saved: remove the job with pserver remove, and load the last saved model";
    return [...lines, ...row("choices", text, "fail")];
  }
  for (const [i, choice] of choices.entries()) {
    const number = `${i + 1}. `;
    const head = titleHead(i === 0 ? "choices" : "", look) + number;
    lines.push(...hangingLines(head, describeChoice(choice), width));
    const below = " ".repeat(textWidth(head));
    lines.push(...hangingLines(below, describeLost(choice), width));
  }
  return lines;
}

/** A choice in one line: the state that the shard goes on from. */
export function describeChoice(choice: RecoveryChoice): string {
  const where = `record ${choice.seq} of generation ${choice.generation}`;
  switch (choice.from) {
    case "prefix":
      return `prefix: the journal as far as it can be read, ${where}`;
    case "rest":
      return `rest: the journal without ${nameSeqs(choice.without ?? [])}, ${where}`;
    case "archive":
      return `archive: with what the broker still holds, ${where}`;
    case "snapshot":
      return `snapshot: ${where}`;
  }
}

function describeLost({ lost, without, seq }: RecoveryChoice): string {
  const { from, to, records, trainers, hostRecords, unknown } = lost;
  if (records === 0) return "no record is known to be lost";
  const named = trainers
    .slice(0, LISTED_MAX)
    .map(({ trainer, records: own }) => `${own} of ${visible(trainer)}`);
  const others = trainers.slice(LISTED_MAX);
  const rest = others.reduce((sum, each) => sum + each.records, 0);
  const whose = [
    ...named,
    ...(rest > 0 ? [`${rest} of ${formatCount(others.length, "other trainer")}`] : []),
    ...(hostRecords > 0 ? [`${hostRecords} of hosts`] : []),
    ...(unknown > 0
      ? [`${unknown} whose ${unknown === 1 ? "sender is" : "senders are"} unknown`]
      : []),
  ];
  const behind = to > seq ? [nameRecords({ from: seq + 1, to })] : [];
  const which =
    without === undefined
      ? nameRecords({ from, to })
      : [nameSeqs(without), ...behind].join(" and ");
  return `gives up ${which}, ${formatRecords(records)}: ${whose.join(", ")}`;
}

/** Records that need not follow each other, as `records 5, 9`. */
function nameSeqs(seqs: readonly number[]): string {
  return `${seqs.length === 1 ? "record" : "records"} ${seqs.join(", ")}`;
}

function describeRest({ without, problem, lacks }: FoundRest): string {
  const aside = without.map(({ seq, trainer }) => {
    const whose = trainer === undefined ? "a host" : visible(trainer);
    return `record ${seq} of ${whose}`;
  });
  const text = `${aside.join(", ")} cannot be folded`;
  if (problem !== undefined) return `${text}, nor can the rest: ${visible(problem)}`;
  if (lacks.length === 0) return text;
  return `${text}; without, ${formatCount(lacks.length, "block")} of initialized parameters would be missing`;
}

function describeJournal(journal: FoundJournal | undefined): string {
  if (journal === undefined) return "the stream is gone";
  const { stream, firstSeq, lastSeq, bytes, problem } = journal;
  const range = lastSeq < firstSeq ? "empty" : `records ${firstSeq} to ${lastSeq}`;
  const text = `${stream}: ${range}, ${formatBytes(bytes)}`;
  return problem === undefined ? text : `${text}; it is of no use: ${visible(problem)}`;
}

function describeArchive({
  name,
  generation,
  seq,
  archivedSeq,
  lacks,
  problem,
}: FoundArchive): string {
  const directory = visible(name);
  if (problem !== undefined) return `${directory}: it is of no use: ${visible(problem)}`;
  const rest = seq > archivedSeq ? `, the last ${seq - archivedSeq} from the broker` : "";
  const text = `${directory}: up to record ${seq} of generation ${generation}${rest}`;
  if (lacks.length === 0) return text;
  return `${text}; older than ${formatCount(lacks.length, "block")} of initialized parameters`;
}

function gapLines(journal: FoundJournal | undefined): string[] {
  const gaps = journal?.gaps ?? [];
  const lines = gaps.slice(0, LISTED_MAX).map((gap) => {
    return `${nameRecords(gap)}: ${gap.kind === "empty" ? "not in the stream" : "cannot be read"}`;
  });
  const more = gaps.length - LISTED_MAX;
  return more > 0 ? [...lines, `and ${formatCount(more, "further gap")}`] : lines;
}

function changedLines(journal: FoundJournal | undefined): string[] {
  if (journal?.changed === undefined) return [];
  const { from, to } = journal.changed;
  const what = from === to ? "another than was folded" : "not all those that were folded";
  return [`${nameRecords({ from, to })}: ${what}`];
}

function describeSnapshot({ seq, generation, problem, manifestSeq, lacks }: FoundSnapshot): string {
  if (generation === 0) return `message ${manifestSeq}: ${visible(problem ?? "")}`;
  const count = formatCount(lacks.length, "block");
  const whole = lacks.length === 0 ? "whole" : `older than ${count} of initialized parameters`;
  const state = problem === undefined ? whole : `damaged: ${visible(problem)}`;
  return `record ${seq} of generation ${generation}: ${state}`;
}
