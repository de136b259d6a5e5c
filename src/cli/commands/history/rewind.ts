import type { Command } from "commander";
import type { Cut } from "../../../history/points.ts";
import type { RewoundJob } from "../../../history/rewind-job.ts";
import type { HistorySource } from "../../../history/source.ts";
import { PserverError, visible } from "../../../protocol/errors.ts";
import { addHelp, type CliContext, confirm, openOutput } from "../../context.ts";
import { rebuildWithProgress, resolvePointText, withHistory } from "../../history/with-history.ts";
import { STORE_TIMEOUT_MS, withStore } from "../../open-job.ts";
import {
  addHistoryOptions,
  HISTORY_PERMISSIONS,
  type HistoryFlags,
  POINT_HELP,
} from "../../options/history-options.ts";
import { describeLastFallback, formatCount, formatRecords } from "../../output/amounts.ts";
import type { Output } from "../../output/output.ts";

interface RewindFlags extends HistoryFlags {
  readonly to: string;
  readonly yes?: boolean;
}

/** Adds the command `pserver rewind`, which lets a job go on from an earlier point, in place. */
export function registerRewind(program: Command, context: CliContext): void {
  const command = program
    .command("rewind")
    .summary("let a job go on from an earlier point")
    .description("let a job go on from an earlier point of its history, while it is served")
    .requiredOption("--to <point>", "the point: a time, a position, a step, an update")
    .option("-y, --yes", "do not ask");
  addHistoryOptions(command).action((flags: RewindFlags) => runRewind(context, flags));
  addHelp(command, {
    "What it does": [
      "  All shards are rebuilt in the memory of this command, and then put in place of the present",
      "  ones, one write for each. Every shard gets a new generation: trainers that run are told what",
      "  was given up, as after an accepted loss, and go on. Parameters that did not exist at the point",
      "  are gone and may be created anew. The journal that is left stays readable, as SHARD:SEQ@GENERATION",
      "  and by times, until the next rewind or recovery; one in memory does not.",
      "  If it is interrupted, some shards may have gone back and others not: repeat the command, which",
      "  completes it, whatever point it is given then.",
    ],
    Points: POINT_HELP,
    Permissions: HISTORY_PERMISSIONS,
    "With --json": [
      '  {"job","at":[{"generation","seq"}],"completed","shards":[{"shard","generation","seq",',
      '  "fallbacks","served"}],"ready":[name, …],"gone":[name, …]}; completed: whether an interrupted',
      "  rewind was completed in place of this one.",
    ],
    Examples: [
      '  pserver rewind --job mnist --to "10m ago"',
      "  pserver rewind --job mnist --to trainer-2/8:1041 --yes",
    ],
  });
}

async function runRewind(context: CliContext, flags: RewindFlags): Promise<void> {
  checkOwnHistory(flags);
  const output = openOutput(context, flags);
  // Loaded here, so that other commands start faster.
  const { interruptedRewind, rewindJob } = await import("../../../history/rewind-job.ts");
  const { job } = flags;
  await withHistory(context, flags, async ({ source }) => {
    await withStore(context, { ...flags, timeout: STORE_TIMEOUT_MS }, async (connection, host) => {
      const interrupted = await interruptedRewind(connection, job);
      const at = interrupted?.at ?? (await resolvePointText(context, output, source, flags.to)).cut;
      if (interrupted !== undefined) await tellInterrupted(output, interrupted);
      await ask(context, flags, source, at);
      const { signal } = context;
      const rebuild = await rebuildWithProgress(output, source, signal);
      const options = { connection, host, job, at, rebuild, signal };
      const rewound = await rewindJob(options);
      if (output.json) output.value(rewound);
      else describe(output, rewound);
    });
  });
}

/** @throws BAD_VALUE for a history that may be of another job than the broker's. */
function checkOwnHistory({ fromFile, broker }: RewindFlags): void {
  if (fromFile === undefined && broker) return;
  const flag = fromFile === undefined ? "--no-broker" : "--from-file";
  const text = `${flag}: a job goes back in its own history, that of the broker; pserver fork takes any`;
  throw new PserverError("BAD_VALUE", text);
}

async function tellInterrupted(
  output: Output,
  { at, begunMs }: { readonly at: Cut; readonly begunMs: number },
): Promise<void> {
  const { formatTime } = await import("../../../history/points.ts");
  const { showPosition } = await import("../../../history/source.ts");
  const cut = at.map((position, shard) => showPosition(shard, position)).join(" ");
  output.warning(
    `a rewind that began at ${formatTime(begunMs)} was interrupted, and is completed now: the cut ${cut}`,
  );
}

/**
 * Asks whether to give up all records after the cut.
 * @throws ABORTED if not.
 */
async function ask(
  context: CliContext,
  { job, yes }: RewindFlags,
  source: HistorySource,
  at: Cut,
): Promise<void> {
  if (yes === true) return;
  const { resolvePoint } = await import("../../../history/resolve-point.ts");
  const { cut: now } = await resolvePoint(source, { kind: "now" }, context.signal);
  const records = now.reduce((sum, { generation, seq }, shard) => {
    const from = at[shard];
    return sum + seq - (from?.generation === generation ? from.seq : 0);
  }, 0);
  const question = `Let job ${job} go back, and give up ${formatRecords(records)}?`;
  if (await confirm(context, question)) return;
  throw new PserverError("ABORTED", `job ${job} stays as it is`, { job });
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
