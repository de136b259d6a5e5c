import type { Command } from "commander";
import type { ContributionLedger, LedgerEntry } from "../../../history/ledger.ts";
import { visible } from "../../../protocol/errors.ts";
import { sumOfAccounts, sumOfTallies } from "../../../protocol/messages/contributions.ts";
import { addHelp, type CliContext, openOutput } from "../../context.ts";
import { resolvePointText, withHistory } from "../../history/with-history.ts";
import {
  addHistoryOptions,
  HISTORY_PERMISSIONS,
  type HistoryFlags,
  POINT_HELP,
} from "../../options/history-options.ts";
import { formatCount, formatRecords } from "../../output/amounts.ts";
import type { Output } from "../../output/output.ts";
import { EXIT } from "../../report-error.ts";

interface LedgerFlags extends HistoryFlags {
  readonly trainer?: string;
  readonly until: string;
}

/** Adds the command `pserver ledger`, which says what became of every contribution. */
export function registerLedger(program: Command, context: CliContext): void {
  const command = program
    .command("ledger")
    .summary("show what became of every contribution")
    .description("show what became of the contributions to the fragments of a diloco job")
    .option("--trainer <id>", "only those of this trainer, one by one")
    .option("--until <point>", "only those up to this point", "now");
  addHistoryOptions(command).action((flags: LedgerFlags) => runLedger(context, flags));
  addHelp(command, {
    "What it shows": [
      "  For each trainer and fragment how many contributions were processed, merged, merged although they",
      "  were late, and dropped, with the reasons and the rounds in which they count; with --trainer also",
      "  each of them. It folds the journals again, as far as they are kept, and checks for every trainer",
      "  that processed = merged + late + dropped + what is in open rounds, and that the accounts which",
      "  trainers are told are those of the contributions that are there. The exit code is 1 if not.",
    ],
    Points: POINT_HELP,
    Permissions: HISTORY_PERMISSIONS,
    "With --json": [
      '  A line for every contribution: {"time","shard","generation","seq","trainer","fragment","base",',
      '  "steps","tokens","round","fate","reason"}; a fate is merged, late, dropped or open. Then one line',
      '  {"sound","receipts":[{"trainer","fragment","processed","merged","late","dropped","open","reasons",',
      '  "rounds"}],"earlier":[{"trainer",…}],"findings":[{"shard","trainer","problem"}]}: a tally is',
      '  {"contributions","steps","tokens"}; earlier are accounts from before the records that are kept.',
    ],
    Examples: ["  pserver ledger", "  pserver ledger --trainer phone-7 --json"],
  });
}

async function runLedger(context: CliContext, flags: LedgerFlags): Promise<void> {
  const output = openOutput(context, flags);
  const { readLedger } = await import("../../../history/ledger.ts");
  const { ledgerEntry } = await import("../../history/ledger-table.ts");
  const entries: LedgerEntry[] = [];
  const onEntry = (entry: LedgerEntry): void => {
    if (output.json) output.value(ledgerEntry(entry));
    else if (flags.trainer !== undefined) entries.push(entry);
  };
  await withHistory(context, flags, async ({ source }) => {
    const { cut } = await resolvePointText(context, output, source, flags.until);
    const { signal } = context;
    const options = { until: cut, signal, trainer: flags.trainer, onEntry };
    const ledger = await output
      .progress("folding", formatRecords)
      .reported((onProgress) => readLedger(source, { ...options, onProgress }));
    await showLedger(output, ledger, entries);
    if (ledger.findings.length > 0) context.setExitCode(EXIT.failure);
  });
}

async function showLedger(
  output: Output,
  ledger: ContributionLedger,
  entries: readonly LedgerEntry[],
): Promise<void> {
  const { describeEntries, describeReceipts, ledgerSums } = await import(
    "../../history/ledger-table.ts"
  );
  if (output.json) {
    output.value(ledgerSums(ledger));
    return;
  }
  const { receipts, earlier, findings } = ledger;
  if (entries.length > 0) output.lines([...describeEntries(entries, output), ""]);
  output.lines(describeReceipts(receipts, output));
  for (const { shard, trainer, problem } of findings) {
    output.warning(`shard ${shard}: account of ${visible(trainer)}: ${visible(problem)}`);
  }
  const before = sumOfAccounts(earlier.values()).processed.contributions;
  if (before > 0) {
    output.message(`${formatCount(before, "contribution")} came before the records that are kept`);
  }
  const { processed, merged, late, dropped } = sumOfAccounts(
    receipts.map(({ account }) => account),
  );
  const open = receipts.map((receipt) => receipt.open);
  const inOpen = open.reduce(sumOfTallies, { contributions: 0, steps: 0, tokens: 0 });
  output.message(
    `${formatCount(processed.contributions, "contribution")} = ${merged.contributions} merged + ` +
      `${late.contributions} late + ${dropped.contributions} dropped + ${inOpen.contributions} in open rounds` +
      `${findings.length === 0 ? "" : ": the accounts differ"}`,
  );
}
