import { type Command, Option } from "commander";
import { mapConcurrently } from "../../actors/concurrent.ts";
import type { ContinuedShard } from "../../actors/journal/next-generation.ts";
import type {
  FoundArchive,
  FoundJournal,
  FoundRest,
  FoundSnapshot,
  RecoveryChoice,
  ShardFindings,
} from "../../actors/recovery/findings.ts";
import type { EntryFindings } from "../../actors/recovery/inspect-entries.ts";
import type { Recovery } from "../../actors/recovery/recovery.ts";
import { resolveSettings } from "../../client/wire/broker-settings.ts";
import type { BrokerAndArchive } from "../../history/archive/joined-source.ts";
import { mismatch, PserverError, visible } from "../../protocol/errors.ts";
import { SHARDS_MAX } from "../../protocol/limits.ts";
import type { EntryProblem } from "../../protocol/messages/shard-knowledge.ts";
import type { ConnectionSettings } from "../../transport/connection.ts";
import { addHelp, askLine, type CliContext, confirm, openOutput } from "../context.ts";
import {
  addConnectionOptions,
  addJobOption,
  addOutputOptions,
  type ConnectionFlags,
  toOverrides,
} from "../options/connection-options.ts";
import { wholeNumber } from "../options/parse-values.ts";
import {
  describeLastFallback,
  formatBytes,
  formatCount,
  formatRecords,
  nameRecords,
  nameShards,
} from "../output/amounts.ts";
import type { TextFormat, TextStyle } from "../output/colors.ts";
import type { Output, OutputFlags } from "../output/output.ts";
import { hangingLines, textWidth, titledLines, titlePrefix } from "../output/wrap.ts";
import { EXIT } from "../report-error.ts";
import { unlessAborted } from "../signals.ts";

/** A stopped shard, and the choice that was made for it. */
interface Plan {
  readonly findings: ShardFindings;
  readonly choice: RecoveryChoice;
}

/** A recovered shard, and whether it is served. */
interface ServedLoss extends ContinuedShard {
  /** Whether a host already serves it. */
  readonly served: boolean;
}

/** Lets shards go on, one after the other, and tells what each has lost. */
async function carryOut(
  { signal }: CliContext,
  output: Output,
  recovery: Recovery,
  plans: readonly Plan[],
): Promise<ContinuedShard[]> {
  const recovered: ContinuedShard[] = [];
  for (const { findings, choice } of plans) {
    const state = await unlessAborted(signal, recovery.recover(findings, choice));
    recovered.push(state);
    const { shard, generation, fallbacks } = state;
    const lost = describeLastFallback(fallbacks);
    output.message(
      `shard ${shard} goes on from record ${choice.seq} under generation ${generation}: ${lost}`,
    );
  }
  return recovered;
}

/** Waits until hosts serve the shards that were recovered, and tells which they do not serve. */
async function awaitOwners(
  { signal }: CliContext,
  output: Output,
  recovery: Recovery,
  recovered: readonly ContinuedShard[],
): Promise<ServedLoss[]> {
  const asked = mapConcurrently(recovered, (each) => recovery.awaitOwner(each, signal));
  const problems = await unlessAborted(signal, asked);
  const served = recovered.map((each, i) => ({ ...each, served: problems[i] === undefined }));
  const again = served.filter((each) => each.served).map(({ shard }) => shard);
  if (again.length > 0) output.message(`served again: ${nameShards(again)}`);
  for (const [i, problem] of problems.entries()) {
    if (problem === undefined) continue;
    output.warning(
      `not served yet: shard ${recovered[i]?.shard}: ${problem.code}: ${problem.message}`,
    );
  }
  return served;
}

/** Maximum length of the lists of snapshots, gaps and trainers; `--json` has all. */
const LISTED_MAX = 8;

/** Describes the findings about a stopped shard for people. */
export function describeFindings(findings: ShardFindings, format: TextFormat): string[] {
  const { paint, width } = format;
  const { shard, error, snapshots, journal, archive, rest, lastKnownSeq, generation, choices } =
    findings;
  const row = (title: string, text: string, style?: TextStyle): string[] =>
    titledLines(title, text, format, style);
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
    const prefix = titlePrefix(i === 0 ? "choices" : "", format) + number;
    lines.push(...hangingLines(prefix, describeChoice(choice), width));
    const below = " ".repeat(textWidth(prefix));
    lines.push(...hangingLines(below, describeLost(choice), width));
  }
  return lines;
}

/** Describes a choice in one line: the state from which the shard goes on. */
function describeChoice(choice: RecoveryChoice): string {
  const lastRecord = `record ${choice.seq} of generation ${choice.generation}`;
  switch (choice.from) {
    case "prefix":
      return `prefix: the journal as far as it can be read, ${lastRecord}`;
    case "rest":
      return `rest: the journal without ${nameSeqs(choice.without ?? [])}, ${lastRecord}`;
    case "archive":
      return `archive: with what the broker still holds, ${lastRecord}`;
    case "snapshot":
      return `snapshot: ${lastRecord}`;
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

/** Names records that need not follow each other, as `records 5, 9`. */
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

/** The state from which the command line wants the shard to go on. */
interface WantedState {
  readonly from: RecoveryChoice["from"];
  /** Sequence number of the last record in an older snapshot. */
  readonly record?: number;
}

/**
 * Finds the choice that the command line asks for.
 * @throws BAD_VALUE, naming the shard's choices, if it has no such choice.
 */
function selectChoice(findings: ShardFindings, wanted: WantedState): RecoveryChoice {
  const { shard, choices } = findings;
  const found = choices.find(
    ({ from, seq }) =>
      from === wanted.from && (wanted.record === undefined || wanted.record === seq),
  );
  if (found !== undefined) return found;
  const expected = choices.map(({ from, seq }) => `${from} at record ${seq}`).join(", ");
  const record = wanted.record === undefined ? "" : ` at record ${wanted.record}`;
  const choice = expected === "" ? "nothing, for nothing of it can be saved" : expected;
  throw mismatch("BAD_VALUE", `shard ${shard}`, choice, `${wanted.from}${record}`, { shard });
}

/** @throws BAD_VALUE if a shard that was named has not stopped for a loss. */
function checkStopped({ shard, condition, error }: ShardFindings): void {
  if (condition === "stopped") return;
  const state =
    condition === "failed"
      ? `it has failed for another reason: ${error?.code}: ${error?.message}`
      : condition === "serving"
        ? "it is served"
        : "nothing of it is lost; start a host";
  throw new PserverError(
    "BAD_VALUE",
    `shard ${shard}: expected one that has stopped because something is lost; ${state}`,
    { shard, expected: "stopped", received: condition },
  );
}

/** Shards that are inspected at one time; each looks through its journal. */
const INSPECTED_AT_ONCE = 8;

interface RecoverFlags extends ConnectionFlags, OutputFlags {
  readonly entries?: boolean;
  readonly job: string;
  readonly shard?: readonly number[];
  readonly from?: RecoveryChoice["from"];
  readonly record?: number;
  readonly archive?: string;
  readonly yes?: boolean;
}

/** Adds the command `pserver recover`, which shows what shards have lost, and lets them go on without it. */
export function registerRecover(program: Command, context: CliContext): void {
  const shards = wholeNumber(0, SHARDS_MAX - 1);
  const command = program
    .command("recover")
    .summary("let stopped shards go on without what is lost")
    .description("show what stopped shards have lost, and accept the loss so that they go on");
  addOutputOptions(addJobOption(addConnectionOptions(command)))
    .option(
      "--shard <n>",
      "only this shard; may be repeated (default: all)",
      (text: string, before: readonly number[] = []) => [...before, shards(text)],
    )
    .addOption(
      new Option("--from <state>", "the state to go on from, without asking").choices([
        "rest",
        "snapshot",
        "prefix",
        "archive",
      ]),
    )
    .option("--archive <dir>", "an archive of the job (see pserver archive) to go on from")
    .option(
      "--record <n>",
      "with --from snapshot: an older one, by its record",
      wholeNumber(0, Number.MAX_SAFE_INTEGER),
    )
    .option(
      "--entries",
      "write damaged entries of the job's bucket again from what the shards know",
    )
    .option("--yes", "accept the loss without asking; needs --from or --entries")
    .action((flags: RecoverFlags) => runRecover(context, flags));
  addHelp(command, {
    "What it does": [
      "  Without --yes it only shows, and asks where it runs in a terminal. A shard that goes on gets a",
      "  new generation: its old positions mean nothing any more, and every trainer is told what was",
      "  given up. The command ends once running hosts serve it again, or says why they do not; that",
      "  takes up to two lease times. It needs the user of a host.",
      "  A record that hosts cannot fold (FOLD_FAILED) can be put aside: --from rest goes on with the rest.",
      "  An archive is read with what the broker still holds: it gives the records that were lost, and the",
      "  broker those that were not archived yet.",
      "  Damage to the job's bucket stops no shard, but nobody may join or initialize (JOB_DAMAGED). With",
      "  --entries what is damaged, lost or older than what the shards know is written again: for that,",
      "  hosts must serve all shards. Entries that nobody needs are removed; session numbers are skipped.",
    ],
    "Exit code": [
      "  1 if shards have stopped and were not recovered, or entries are damaged and were not written",
      "  again, else 0.",
    ],
    "With --json": [
      '  {"job","shards":[{"shard","condition","error","snapshots","journal","archive","rest","choices",…}],',
      '  "recovered":[{"shard","generation","fallbacks","served"}],',
      '  "entries":{"problems":[{"key","problem"}],"unasked","repaired"}}; a condition is serving, whole,',
      "  stopped or failed.",
    ],
    Examples: [
      "  pserver recover --job mnist",
      "  pserver recover --job mnist --from prefix --yes",
      "  pserver recover --job mnist --entries --yes",
      "  pserver recover --job mnist --shard 3 --from snapshot --record 1200 --yes",
      "  pserver recover --job mnist --archive /archives/mnist --from archive --yes",
    ],
  });
}

async function runRecover(context: CliContext, flags: RecoverFlags): Promise<void> {
  checkFlags(flags);
  const output = openOutput(context, flags);
  // Loaded here, so that other commands start faster.
  const { allShards, Recovery } = await import("../../actors/recovery/recovery.ts");
  const connection = resolveSettings(toOverrides(flags), context.environment);
  const archive = await openArchive(context, flags, connection);
  try {
    const opening = Recovery.open(connection, flags.job, archive);
    const recovery = await unlessAborted(context.signal, opening);
    try {
      const shards = [...new Set(flags.shard ?? allShards(recovery.settings))];
      await recoverShards(context, output, flags, recovery, shards);
    } finally {
      await recovery.close();
    }
  } finally {
    await archive?.close();
  }
}

/** Shows what is lost of shards, and lets those go on for which a choice is given. */
async function recoverShards(
  context: CliContext,
  output: Output,
  flags: RecoverFlags,
  recovery: Recovery,
  shards: readonly number[],
): Promise<void> {
  const entries = await recoverEntries(context, output, flags, recovery);
  const found = await inspectAll(context, recovery, shards);
  const stopped = found.filter(({ condition }) => condition === "stopped");
  if (!output.json) showFindings(output, flags, found, stopped);
  if (flags.shard !== undefined && flags.from !== undefined) found.forEach(checkStopped);
  const plans = await choose(context, output, flags, stopped);
  const recovered = await carryOut(context, output, recovery, plans);
  const served = await awaitOwners(context, output, recovery, recovered);
  if (output.json) output.value({ job: flags.job, shards: found, recovered: served, entries });
  const isLeft = entries.problems.some(({ key }) => !entries.repaired.includes(key));
  if (isLeft || recovered.length < stopped.length) context.setExitCode(EXIT.failure);
  if (recovered.length === stopped.length) return;
  if (plans.length === 0) output.message(`nothing was changed; ${whatToGive(flags, stopped)}`);
}

/** The entries of the job's bucket that have problems, and those that were written again or removed. */
interface RecoveredEntries extends Pick<EntryFindings, "problems" | "unasked"> {
  readonly repaired: readonly string[];
}

/** Shows what is wrong with the job's entries, and has them written again if that is wanted. */
async function recoverEntries(
  context: CliContext,
  output: Output,
  { job, entries, yes }: RecoverFlags,
  recovery: Recovery,
): Promise<RecoveredEntries> {
  const { isRepairable } = await import("../../actors/recovery/repair-entries.ts");
  const findings = await unlessAborted(context.signal, recovery.inspectEntries());
  // A shard's mark belongs to the shard, which has stopped at it.
  const problems = findings.problems.filter(({ key }) => isRepairable(key));
  const { unasked } = findings;
  if (problems.length === 0) return { problems, unasked, repaired: [] };
  if (!output.json) output.lines(problems.flatMap((each) => describeProblem(each, output)));
  const isWanted =
    (entries === true && yes === true) ||
    (!output.json &&
      context.stdin.isTTY === true &&
      (await confirm(context, "write these entries again from what the shards know?")));
  if (!isWanted) {
    output.message(`to write them again: pserver recover --job ${job} --entries --yes`);
    return { problems, unasked, repaired: [] };
  }
  const repaired = await unlessAborted(context.signal, recovery.repairEntries(findings));
  output.message(`written again or removed: ${repaired.map(visible).join(", ")}`);
  return { problems, unasked, repaired };
}

function describeProblem({ key, problem }: EntryProblem, { paint, width }: TextFormat): string[] {
  const what = `entry ${visible(key)} ${paint("fail", "is damaged")}: ${visible(problem)}`;
  return hangingLines("", what, width);
}

/** Opens the archive that the flags name; returns undefined if they name none. */
async function openArchive(
  { signal }: CliContext,
  { archive, job }: RecoverFlags,
  connection: ConnectionSettings,
): Promise<BrokerAndArchive | undefined> {
  if (archive === undefined) return undefined;
  const { BrokerAndArchive } = await import("../../history/archive/joined-source.ts");
  return await unlessAborted(signal, BrokerAndArchive.open(archive, connection, job, signal));
}

/** @throws BAD_VALUE for flags that do not go together. */
function checkFlags({ yes, from, record, archive, entries }: RecoverFlags): void {
  const problem =
    yes === true && from === undefined && entries !== true
      ? "--yes: expected --from or --entries with it; received neither"
      : record !== undefined && from !== "snapshot"
        ? "--record: expected --from snapshot with it"
        : from === "archive" && archive === undefined
          ? "--from archive: expected --archive with it; received none"
          : undefined;
  if (problem !== undefined) throw new PserverError("BAD_VALUE", problem);
}

async function inspectAll(
  { signal }: CliContext,
  recovery: Recovery,
  shards: readonly number[],
): Promise<ShardFindings[]> {
  const { shards: count } = recovery.settings;
  const wrong = shards.find((shard) => shard >= count);
  if (wrong !== undefined) {
    const text = `--shard: expected 0 to ${count - 1}; received ${wrong}`;
    throw new PserverError("BAD_VALUE", text, { expected: count - 1, received: wrong });
  }
  const found = mapConcurrently(shards, (shard) => recovery.inspect(shard), INSPECTED_AT_ONCE);
  return await unlessAborted(signal, found);
}

function showFindings(
  output: Output,
  { job }: RecoverFlags,
  found: readonly ShardFindings[],
  stopped: readonly ShardFindings[],
): void {
  for (const findings of stopped) output.lines(describeFindings(findings, output));
  for (const { shard, condition, error } of found) {
    if (condition !== "failed") continue;
    const reason = `${error?.code}: ${error?.message}`;
    output.warning(`shard ${shard} has failed, but for no loss: ${reason}`);
  }
  if (stopped.length === 0) output.message(`no shard of job ${job} has stopped for a loss`);
}

/** Makes a choice for each shard, by the flags or by asking a person; none if neither is possible. */
async function choose(
  context: CliContext,
  output: Output,
  { from, record, yes }: RecoverFlags,
  stopped: readonly ShardFindings[],
): Promise<Plan[]> {
  const wantedState = from && { from, ...(record === undefined ? {} : { record }) };
  const asked =
    wantedState === undefined
      ? stopped
      : stopped.map((findings) => ({
          ...findings,
          choices: [selectChoice(findings, wantedState)],
        }));
  if (yes === true && wantedState !== undefined) {
    return asked.flatMap((findings) => findings.choices.map((choice) => ({ findings, choice })));
  }
  if (output.json || yes === true || context.stdin.isTTY !== true) return [];
  const plans: Plan[] = [];
  for (const findings of asked) {
    const choice = await askForChoice(context, findings);
    if (choice !== undefined) plans.push({ findings, choice });
  }
  return plans;
}

/** Asks a person for a shard's choice; returns undefined to leave the shard stopped. */
async function askForChoice(
  context: CliContext,
  { shard, choices }: ShardFindings,
): Promise<RecoveryChoice | undefined> {
  const [only] = choices;
  if (only === undefined) return undefined;
  if (choices.length === 1) {
    const question = `shard ${shard}: go on from ${describeChoice(only)}?`;
    return (await confirm(context, question)) ? only : undefined;
  }
  const question = `shard ${shard}: go on from which? [1-${choices.length}, anything else leaves it]`;
  const answer = await askLine(context, question);
  return /^\d+$/.test(answer) ? choices[Number(answer) - 1] : undefined;
}

function whatToGive(
  { job, from, archive }: RecoverFlags,
  stopped: readonly ShardFindings[],
): string {
  const choices = stopped.flatMap(({ choices: own }) => own.map((choice) => choice.from));
  if (choices.length === 0) return "nothing can be saved";
  const states = from ?? [...new Set(choices)].join("|");
  const where = archive === undefined ? "" : ` --archive ${archive}`;
  return `to accept the loss: pserver recover --job ${job}${where} --from ${states} --yes`;
}
