import type { ContributionLedger, FragmentReceipt, LedgerEntry } from "../../history/ledger.ts";
import { formatTime } from "../../history/points.ts";
import { showPosition } from "../../protocol/messages/position.ts";
import { formatRanges } from "../output/amounts.ts";
import type { TextFormat } from "../output/colors.ts";
import { formatTable, type Shrink } from "../output/table.ts";

/** Writes what became of the contributions of each trainer to each fragment as a table. */
export function describeReceipts(
  receipts: readonly FragmentReceipt[],
  format: TextFormat,
): string[] {
  const columns = [
    { title: "TRAINER" },
    { title: "FRAGMENT" },
    { title: "PROCESSED", align: "right" },
    { title: "MERGED", align: "right" },
    { title: "LATE", align: "right" },
    { title: "DROPPED", align: "right" },
    { title: "OPEN", align: "right" },
    { title: "WHY" },
    { title: "ROUNDS" },
  ] as const;
  const rows = receipts.map(({ trainer, fragment, account, open, reasons, rounds }) => {
    const { processed, merged, late, dropped } = account;
    const counts = [processed, merged, late, dropped, open];
    return [
      trainer,
      fragment,
      ...counts.map(({ contributions }) => String(contributions)),
      [...reasons].map(([reason, count]) => `${count} ${reason}`).join(", "),
      formatRanges(rounds),
    ];
  });
  const shrinks: Shrink[] = [
    { kind: "wrap", column: "ROUNDS", to: 12 },
    { kind: "cut", column: "TRAINER", to: 12 },
  ];
  return formatTable(columns, rows, format, shrinks);
}

/** Writes contributions, each with the round that it went to, as a table. */
export function describeEntries(entries: readonly LedgerEntry[], format: TextFormat): string[] {
  const columns = [
    { title: "TIME" },
    { title: "POSITION" },
    { title: "FRAGMENT" },
    { title: "BASE", align: "right" },
    { title: "STEPS", align: "right" },
    { title: "TOKENS", align: "right" },
    { title: "ROUND", align: "right" },
    { title: "FATE" },
  ] as const;
  const rows = entries.map((entry) => [
    formatTime(entry.timeMs),
    showPosition(entry.shard, entry.position),
    entry.fragment,
    String(entry.base),
    String(entry.steps),
    String(entry.tokens),
    entry.round === undefined ? "" : String(entry.round),
    entry.reason === undefined ? entry.fate : `${entry.fate}: ${entry.reason}`,
  ]);
  return formatTable(columns, rows, format, [{ kind: "drop", column: "TIME" }]);
}

/** Returns a contribution as `--json` prints it. */
export function ledgerEntry(entry: LedgerEntry): Readonly<Record<string, unknown>> {
  const { timeMs, position, round = null, reason = null, ...rest } = entry;
  return { time: formatTime(timeMs), ...rest, ...position, round, reason };
}

/** Returns the sums as `--json` prints them. */
export function ledgerSums({
  receipts,
  earlier,
  findings,
}: ContributionLedger): Readonly<Record<string, unknown>> {
  return {
    sound: findings.length === 0,
    receipts: receipts.map(({ trainer, fragment, account, open, reasons, rounds }) => ({
      ...{ trainer, fragment, ...account, open },
      ...{ reasons: Object.fromEntries(reasons), rounds },
    })),
    earlier: [...earlier].map(([trainer, account]) => ({ trainer, ...account })),
    findings,
  };
}
