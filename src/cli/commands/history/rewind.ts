import type { Command } from "commander";
import type { DroppedRewind, RewoundJob } from "../../../history/continue/rewind-job.ts";
import type { Cut } from "../../../history/points.ts";
import type { HistorySource } from "../../../history/source.ts";
import { ensureError, mismatch, PserverError, visible } from "../../../protocol/errors.ts";
import { showCut } from "../../../protocol/messages/position.ts";
import { addHelp, type CliContext, confirm, openOutput } from "../../context.ts";
import { rebuildWithProgress, resolvePointText, withHistory } from "../../history/with-history.ts";
import { STORE_TIMEOUT_MS, withStore } from "../../open-job.ts";
import {
  addHistoryOptions,
  HISTORY_PERMISSIONS,
  type HistoryFlags,
  POINT_HELP,
} from "../../options/history-options.ts";
import {
  describeLastFallback,
  formatCount,
  formatRecords,
  nameShards,
} from "../../output/amounts.ts";
import type { Output } from "../../output/output.ts";

interface RewindFlags extends HistoryFlags {
  readonly to?: string;
  readonly complete?: boolean;
  readonly drop?: boolean;
  readonly dryRun?: boolean;
  readonly yes?: boolean;
}

/** What the command is asked to do. */
type Wish =
  | { readonly kind: "to"; readonly point: string }
  | { readonly kind: "complete" | "drop" };

/** Adds the command `pserver rewind`, which lets a job go on from an earlier point, in place. */
export function registerRewind(program: Command, context: CliContext): void {
  const command = program
    .command("rewind")
    .summary("let a job go on from an earlier point")
    .description("let a job go on from an earlier point of its history, while it is served")
    .option("--to <point>", "the point: a time, a position, a step, an update")
    .option("--complete", "complete the rewind that was interrupted")
    .option("--drop", "drop the rewind that was interrupted")
    .option("--dry-run", "with --to or --complete: say what would be given up, and change nothing")
    .option("-y, --yes", "do not ask");
  addHistoryOptions(command).action((flags: RewindFlags) => runRewind(context, flags));
  addHelp(command, {
    "What it does": [
      "  All shards are rebuilt in the memory of this command, and then put in place of the present",
      "  ones, one write for each. Every shard gets a new generation: trainers that run are told what",
      "  was given up, as after an accepted loss, and go on. Parameters that did not exist at the point",
      "  are gone and may be created anew. The journal that is left stays readable, as SHARD:SEQ@GENERATION",
      "  and by times, until the next rewind or recovery; one in memory does not.",
    ],
    "If it is interrupted": [
      "  Some shards may have gone back and others not; status and doctor show it. A rewind to another",
      "  point is refused then: complete the first one with --complete, or by giving its point again, or",
      "  drop it with --drop, which leaves each shard as it is. If",
      "  its point has been trimmed, it can only be dropped. After that, a rewind to another point puts",
      "  the shards together again. A run that was only held up changes nothing any more once another one",
      "  has completed or dropped its rewind: it ends with BUSY.",
    ],
    Points: POINT_HELP,
    Permissions: HISTORY_PERMISSIONS,
    "With --json": [
      '  {"job","at":[{"generation","seq"}],"completed","shards":[{"shard","generation","seq",',
      '  "fallbacks","served"}],"ready":[name, …],"gone":[name, …]}; completed: whether an interrupted',
      '  rewind was completed. With --drop: {"job","id","at","goneBack":[shard, …],"unchanged":[…]}.',
      '  With --dry-run: {"job","at","records"}.',
    ],
    Examples: [
      '  pserver rewind --job mnist --to "10m ago"',
      "  pserver rewind --job mnist --to trainer-2/8:1041 --dry-run",
      "  pserver rewind --job mnist --to trainer-2/8:1041 --yes",
      "  pserver rewind --job mnist --complete",
    ],
  });
}

async function runRewind(context: CliContext, flags: RewindFlags): Promise<void> {
  const wish = wishOf(flags);
  checkOwnHistory(flags);
  if (wish.kind === "drop" && flags.dryRun === true) {
    throw mismatch("BAD_VALUE", "--dry-run", "--to or --complete", "--drop");
  }
  const output = openOutput(context, flags);
  if (wish.kind === "drop") await drop(context, output, flags);
  else await goBack(context, output, flags, wish);
}

/** @throws BAD_VALUE unless exactly one thing is asked for. */
function wishOf({ to, complete, drop }: RewindFlags): Wish {
  const wishes: Wish[] = [
    ...(to === undefined ? [] : [{ kind: "to", point: to } as const]),
    ...(complete === true ? [{ kind: "complete" } as const] : []),
    ...(drop === true ? [{ kind: "drop" } as const] : []),
  ];
  const [wish] = wishes;
  if (wish !== undefined && wishes.length === 1) return wish;
  const received = wishes.length === 0 ? "none" : "several";
  throw new PserverError(
    "BAD_VALUE",
    `expected one of --to, --complete and --drop; received ${received}`,
  );
}

async function goBack(
  context: CliContext,
  output: Output,
  flags: RewindFlags,
  wish: Wish,
): Promise<void> {
  // Loaded here, so that other commands start faster.
  const { findUnfinishedRewind, isSameCut, nothingUnfinished, rewindJob, unfinishedError } =
    await import("../../../history/continue/rewind-job.ts");
  const { job } = flags;
  await withHistory(context, flags, async ({ source }) => {
    const store = { ...flags, timeout: flags.timeout ?? STORE_TIMEOUT_MS };
    await withStore(context, store, async (connection, host) => {
      const noted = await findUnfinishedRewind(connection, job);
      if (noted === undefined && wish.kind === "complete") throw nothingUnfinished(job);
      if (noted !== undefined) await tellUnfinished(output, noted);
      const at =
        wish.kind === "to"
          ? (await resolvePointText(context, output, source, wish.point)).cut
          : undefined;
      if (noted !== undefined && at !== undefined && !isSameCut(at, noted.at))
        throw unfinishedError(job, noted);
      const goesTo = noted?.at ?? at ?? [];
      const { signal } = context;
      if (flags.dryRun === true) {
        const records = await recordsAfter(source, goesTo, signal);
        describeDryRun(output, { job, at: goesTo, records });
        return;
      }
      if (flags.yes !== true) await ask(context, job, await recordsAfter(source, goesTo, signal));
      const rebuild = await rebuildWithProgress(output, source, signal);
      let isBegun = false;
      const onStage = (stage: string): void => {
        isBegun = stage !== "rebuilt" && stage !== "complete";
      };
      const rewinding = rewindJob({ connection, host, job, at, rebuild, signal, onStage });
      const rewound = await rewinding.catch((error: unknown) => {
        // With BUSY another run has gone on with it.
        if (isBegun && ensureError(error).code !== "BUSY") output.warning(howToGoOn(job));
        throw error;
      });
      if (output.json) output.value(rewound);
      else describe(output, rewound);
    });
  });
}

async function drop(context: CliContext, output: Output, flags: RewindFlags): Promise<void> {
  // Loaded here, so that other commands start faster.
  const { dropRewind } = await import("../../../history/continue/rewind-job.ts");
  const { job } = flags;
  const store = { ...flags, timeout: flags.timeout ?? STORE_TIMEOUT_MS };
  await withStore(context, store, async (connection, host) => {
    const dropped = await dropRewind({ connection, host, job });
    if (output.json) output.value(dropped);
    else describeDropped(output, dropped);
  });
}

/** @throws BAD_VALUE for a history that may be of another job than the broker's. */
function checkOwnHistory({ fromFile, broker }: RewindFlags): void {
  if (fromFile === undefined && broker) return;
  const flag = fromFile === undefined ? "--no-broker" : "--from-file";
  const text = `${flag}: a job goes back in its own history, that of the broker; pserver fork takes any`;
  throw new PserverError("BAD_VALUE", text);
}

async function tellUnfinished(
  output: Output,
  { id, at, begunMs }: { readonly id: string; readonly at: Cut; readonly begunMs: number },
): Promise<void> {
  const { formatTime } = await import("../../../history/points.ts");
  const begun = formatTime(begunMs);
  output.message(`the rewind ${id} that began at ${begun} is not complete: the cut ${showCut(at)}`);
}

/** Counts the records that are given up by going back to a cut. */
async function recordsAfter(source: HistorySource, at: Cut, signal: AbortSignal): Promise<number> {
  const { resolvePoint } = await import("../../../history/resolve-point.ts");
  const { cut: now } = await resolvePoint(source, { kind: "now" }, signal);
  return now.reduce((sum, { generation, seq }, shard) => {
    const from = at[shard];
    return sum + seq - (from?.generation === generation ? from.seq : 0);
  }, 0);
}

/** What a rewind would do. */
interface DryRun {
  readonly job: string;
  readonly at: Cut;
  readonly records: number;
}

function describeDryRun(output: Output, { job, at, records }: DryRun): void {
  if (output.json) output.value({ job, at, records });
  else output.message(`job ${job} would go back, and give up ${formatRecords(records)}`);
}

/** Says what can be done about a rewind that has begun and is not complete. */
function howToGoOn(job: string): string {
  return (
    `the rewind of job ${job} is not complete: complete it with "pserver rewind --job ${job} --complete", or drop it ` +
    `with "pserver rewind --job ${job} --drop"`
  );
}

/**
 * Asks whether to give up all records after the cut.
 * @throws ABORTED if not.
 */
async function ask(context: CliContext, job: string, records: number): Promise<void> {
  const question = `Let job ${job} go back, and give up ${formatRecords(records)}?`;
  if (await confirm(context, question)) return;
  throw new PserverError("ABORTED", `job ${job} stays as it is`, { job });
}

function describeDropped(output: Output, { job, id, goneBack, unchanged }: DroppedRewind): void {
  output.message(`dropped the rewind ${id}`);
  if (goneBack.length === 0) {
    output.message(`no shard had gone back: job ${job} is as if it had not begun`);
  } else if (unchanged.length === 0) {
    output.warning(
      "all shards had gone back and stay there; parameters that did not exist at the point still count as " +
        `initialized. A rewind to the same point mends that: pserver rewind --job ${job} --to POINT`,
    );
  } else {
    output.warning(
      `${nameShards(goneBack)} had gone back and stay there; ${nameShards(unchanged)} did not. The job has ` +
        `shards of two times until it is rewound to one point: pserver rewind --job ${job} --to POINT`,
    );
  }
}

function describe(output: Output, { job, shards, gone }: RewoundJob): void {
  for (const { shard, generation, fallbacks } of shards) {
    const lost = describeLastFallback(fallbacks);
    output.message(`shard ${shard} goes on under generation ${generation}: ${lost}`);
  }
  if (gone.length > 0) {
    const names = gone.map(visible).join(", ");
    output.message(`gone, and may be created anew: ${names}`);
  }
  const unserved = shards.filter(({ served }) => !served);
  if (unserved.length === 0) return;
  const what = formatCount(unserved.length, "shard");
  output.warning(`no host serves ${what} yet: start one with pserver host --job ${job}`);
}
