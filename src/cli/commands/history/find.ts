import { Argument, type Command } from "commander";
import { updateEntry } from "../../../history/reports/update-entry.ts";
import {
  detectorOf,
  FINDING_KINDS,
  type Finding,
  type FindingKind,
} from "../../../history/update-findings.ts";
import type { GuardAction } from "../../../protocol/config/index.ts";
import { visible } from "../../../protocol/errors.ts";
import { addHelp, type CliContext, openOutput } from "../../context.ts";
import { guardText } from "../../history/event-text.ts";
import { compactNumber } from "../../history/numbers.ts";
import { UpdateLines } from "../../history/update-columns.ts";
import {
  addRangeOptions,
  type RangeFlags,
  selectUpdates,
  withHistory,
} from "../../history/with-history.ts";
import { addHistoryOptions, type HistoryFlags, POINT_HELP } from "../../options/history-options.ts";
import { wholeNumber } from "../../options/parse-values.ts";
import { formatCount } from "../../output/amounts.ts";
import type { Output } from "../../output/output.ts";
import { visibleJson } from "../../output/wrap.ts";

const DEVIATIONS_DEFAULT = 6;
const BEHIND_DEFAULT = 10;
const LIMIT_DEFAULT = 20;

/** Flags of `pserver find`. */
interface FindFlags extends HistoryFlags, RangeFlags {
  readonly deviations: number;
  readonly behind: number;
  readonly limit: number;
}

/** Adds the command `pserver find`, which finds updates that stand out. */
export function registerFind(program: Command, context: CliContext): void {
  const command = program
    .command("find")
    .summary("find updates that stand out")
    .description(
      "find updates that stand out: not finite, of unusual norm, guarded, stale, rejected, repeated",
    )
    .addArgument(new Argument("<what>", "what to look for").choices([...FINDING_KINDS]));
  addRangeOptions(command)
    .option(
      "--deviations <k>",
      "spike: standard deviations of the trainer's own norms",
      wholeNumber(1, 1_000_000),
      DEVIATIONS_DEFAULT,
    )
    .option(
      "--behind <n>",
      "stale: versions that a block may have gone on",
      wholeNumber(0, 1_000_000_000),
      BEHIND_DEFAULT,
    )
    .option(
      "--limit <n>",
      "lines to print; all are counted",
      wholeNumber(1, 1_000_000_000),
      LIMIT_DEFAULT,
    );
  addHistoryOptions(command).action((what: FindingKind, flags: FindFlags) =>
    runFind(context, what, flags),
  );
  addHelp(command, {
    "What is found": [
      "  nan       updates with a NaN or an infinity, whether the parameter allows them or not",
      "  spike     gradients and pushes whose norm is far from those that the same trainer has sent for",
      "            the same block before; the first eight are only learned from, as no spike is",
      "  guarded   updates that the guard of a parameter has rejected, clipped or set aside",
      "  stale     gradients computed from values that many updates have changed since; those of jobs that",
      "            keep step, and of trainers that have read nothing, do not tell",
      "  rejected  updates that the fold did not apply, and why",
      "  repeat    records that came again after they had been folded; they were applied once",
    ],
    Points: POINT_HELP,
    "With --json": [
      '  one object a line, as of "pserver log --json", with "finding" and, of a spike, "deviations" and',
      '  "usualNorm". All are printed that --limit admits.',
    ],
    Examples: [
      "  pserver find nan",
      "  pserver find guarded --trainer trainer-2",
      "  pserver find spike --param fc1 --since '2h ago' --deviations 10",
      "  pserver find rejected --trainer trainer-2 --json --limit 1000",
    ],
  });
}

async function runFind(context: CliContext, what: FindingKind, flags: FindFlags): Promise<void> {
  const output = openOutput(context, flags);
  const { signal } = context;
  const detect = detectorOf(what, flags);
  const tally = new FindingTally();
  await withHistory(context, flags, async ({ source }) => {
    const updates = await selectUpdates(context, output, source, flags, { signal });
    const printer = new FindingPrinter(output, flags.limit);
    for await (const events of updates) {
      for (const event of events) {
        const finding = detect(event);
        if (finding === undefined) continue;
        tally.add(finding);
        await output.stream(printer.print(finding), signal);
      }
    }
  });
  for (const line of tally.lines(what, flags.limit)) output.message(line);
}

/** Counts findings by the senders of the updates. */
class FindingTally {
  readonly #senders: Map<string, number> = new Map();
  #count = 0;

  add({ event }: Finding): void {
    const sender = event.trainer ?? "nobody that could be read";
    this.#senders.set(sender, (this.#senders.get(sender) ?? 0) + 1);
    this.#count += 1;
  }

  lines(what: FindingKind, limit: number): string[] {
    if (this.#count === 0) return [`no update found: ${what}`];
    const senders = [...this.#senders]
      .sort(([, a], [, b]) => b - a)
      .slice(0, 8)
      .map(([trainer, count]) => `${count} of ${visible(trainer)}`);
    const rest = this.#count > limit ? `, the first ${limit} above` : "";
    return [`found ${formatCount(this.#count, "update")}${rest}: ${senders.join(", ")}`];
  }
}

/** Prints findings as they come, up to a limit. */
class FindingPrinter {
  readonly #output: Output;
  readonly #limit: number;
  readonly #table: UpdateLines;
  #printed = 0;

  constructor(output: Output, limit: number) {
    this.#output = output;
    this.#limit = limit;
    this.#table = UpdateLines.of(output);
  }

  /** Returns the text of a finding; nothing beyond the limit. */
  print(finding: Finding): string[] {
    if (this.#printed >= this.#limit) return [];
    this.#printed += 1;
    if (this.#output.json) return [`${visibleJson(findingEntry(finding))}\n`];
    const remark = `${this.#table.indent}${this.#output.paint("warn", remarkOf(finding))}`;
    const titles = this.#printed === 1 ? [this.#table.titles()] : [];
    return [`${[...titles, ...this.#table.lines(finding.event), remark].join("\n")}\n`];
  }
}

function findingEntry(finding: Finding): object {
  const record = { finding: finding.kind, ...updateEntry(finding.event) };
  if (finding.kind !== "spike") return record;
  return { ...record, deviations: finding.deviations, usualNorm: finding.mean };
}

const ACTION_WORDS: Readonly<Record<GuardAction, string>> = {
  reject: "rejected",
  clip: "clipped",
  "set-aside": "set aside",
};

/** Describes what is remarkable about an update, in a few words. */
function remarkOf(finding: Finding): string {
  switch (finding.kind) {
    case "nan": {
      const elements = finding.event.block?.elements ?? 0;
      return `${finding.nonFinite} of ${formatCount(elements, "element")} not finite`;
    }
    case "spike": {
      const { norm, mean, deviations } = finding;
      return `norm ${compactNumber(norm)}, before ${compactNumber(mean)}: ${compactNumber(deviations)} deviations away`;
    }
    case "guarded":
      return visible(`${ACTION_WORDS[finding.mark.action]}: ${guardText(finding.mark)}`);
    case "stale":
      return `computed from values ${formatCount(finding.behind, "version")} old`;
    case "rejected":
      return visible(finding.reason);
    case "repeat":
      return finding.firstSeq === 0
        ? "folded before; it was applied once"
        : `repeats record ${finding.firstSeq}; it was applied once`;
  }
}
