import { type Command, Option } from "commander";
import { mapConcurrently } from "../../actors/concurrent.ts";
import type { RecoveryChoice, ShardFindings } from "../../actors/recovery/findings.ts";
import type { Recovery } from "../../actors/recovery/recovery.ts";
import { resolveSettings } from "../../client/wire/settings.ts";
import type { BrokerAndArchive } from "../../history/archive/broker-and-archive.ts";
import { PserverError } from "../../protocol/errors.ts";
import { SHARDS_MAX } from "../../protocol/limits.ts";
import type { ConnectionSettings } from "../../transport/connection.ts";
import { askLine } from "../ask-line.ts";
import { confirm } from "../confirm.ts";
import { type CliContext, openOutput } from "../context.ts";
import { EXIT } from "../exit-codes.ts";
import { addHelp } from "../help-text.ts";
import { unlessAborted } from "../interrupts.ts";
import {
  addConnectionOptions,
  addJobOption,
  type ConnectionFlags,
  toOverrides,
} from "../options/connection-options.ts";
import { addOutputOptions } from "../options/output-options.ts";
import { wholeNumber } from "../options/parse-values.ts";
import type { Output, OutputFlags } from "../output/output.ts";
import { awaitOwners, carryOut, type Plan } from "../recover/carry-out.ts";
import { describeChoice, describeFindings } from "../recover/describe-findings.ts";
import { checkStopped, selectChoice } from "../recover/select-choice.ts";

/** Shards that are inspected at one time; each looks through its journal. */
const INSPECTED_AT_ONCE = 8;

interface RecoverFlags extends ConnectionFlags, OutputFlags {
  readonly job: string;
  readonly shard?: readonly number[];
  readonly from?: RecoveryChoice["from"];
  readonly record?: number;
  readonly archive?: string;
  readonly yes?: boolean;
}

/** `pserver recover`: shows what shards have lost, and lets them go on without it. */
export function registerRecover(program: Command, context: CliContext): void {
  const shards = wholeNumber(0, SHARDS_MAX - 1);
  const command = program
    .command("recover")
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
    .option("--yes", "accept the loss without asking; needs --from")
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
    ],
    "Exit code": ["  1 if shards have stopped and were not recovered, else 0."],
    "With --json": [
      '  {"job","shards":[{"shard","condition","error","snapshots","journal","archive","rest","choices",…}],',
      '  "recovered":[{"shard","generation","fallbacks","served"}]}; a condition is serving, whole,',
      "  stopped or failed.",
    ],
    Examples: [
      "  pserver recover --job mnist",
      "  pserver recover --job mnist --from prefix --yes",
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
  const found = await inspectAll(context, recovery, shards);
  const stopped = found.filter(({ condition }) => condition === "stopped");
  if (!output.json) showFindings(output, flags, found, stopped);
  if (flags.shard !== undefined && flags.from !== undefined) found.forEach(checkStopped);
  const plans = await choose(context, output, flags, stopped);
  const recovered = await carryOut(context, output, recovery, plans);
  const served = await awaitOwners(context, output, recovery, recovered);
  if (output.json) output.value({ job: flags.job, shards: found, recovered: served });
  if (recovered.length === stopped.length) return;
  context.setExitCode(EXIT.failure);
  if (plans.length === 0) output.message(`nothing was changed; ${whatToGive(flags, stopped)}`);
}

/** The archive that the flags name; undefined without one. */
async function openArchive(
  { signal }: CliContext,
  { archive, job }: RecoverFlags,
  connection: ConnectionSettings,
): Promise<BrokerAndArchive | undefined> {
  if (archive === undefined) return undefined;
  const { BrokerAndArchive } = await import("../../history/archive/broker-and-archive.ts");
  return await unlessAborted(signal, BrokerAndArchive.open(archive, connection, job, signal));
}

/** @throws BAD_VALUE for flags that do not go together. */
function checkFlags({ yes, from, record, archive }: RecoverFlags): void {
  const problem =
    yes === true && from === undefined
      ? "--yes: expected --from with it; received none"
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

/** A choice for each shard, by the flags or by asking a person; none if neither is possible. */
async function choose(
  context: CliContext,
  output: Output,
  { from, record, yes }: RecoverFlags,
  stopped: readonly ShardFindings[],
): Promise<Plan[]> {
  const wanted = from && { from, ...(record === undefined ? {} : { record }) };
  const asked =
    wanted === undefined
      ? stopped
      : stopped.map((findings) => ({ ...findings, choices: [selectChoice(findings, wanted)] }));
  if (yes === true) {
    return asked.flatMap((findings) => findings.choices.map((choice) => ({ findings, choice })));
  }
  if (output.json || context.stdin.isTTY !== true) return [];
  const plans: Plan[] = [];
  for (const findings of asked) {
    const choice = await askForChoice(context, findings);
    if (choice !== undefined) plans.push({ findings, choice });
  }
  return plans;
}

/** Asks a person for a shard's choice; undefined to leave the shard stopped. */
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
