import type { Command } from "commander";
import { describeTakeOver, readTakeOver } from "../../actors/owner/take-over.ts";
import type { JobAdmin } from "../../client/admin/job-admin.ts";
import { type JobStatus, readJobStatus } from "../../client/admin/job-status.ts";
import {
  archiverLag,
  archiverState,
  closedSteps,
  type Declared,
  describeLackingReplicas,
  fallenBack,
  idleShards,
  type ListedArchiver,
  type ListedRewind,
  type ListedShard,
  type ListedTape,
  rejectionsByTrainer,
  roundsOf,
  type TrainerRejections,
  tapeGaps,
  type UpdateCounts,
  updatesOf,
} from "../../client/admin/participants.ts";
import { GUARD_ACTIONS, synchronizationText } from "../../protocol/config/index.ts";
import { ensureError, PserverError, visible } from "../../protocol/errors.ts";
import { showCut } from "../../protocol/messages/position.ts";
import { addHelp, type CliContext, openOutput } from "../context.ts";
import { withAdmin } from "../open-job.ts";
import { type AskingFlags, addAskingOptions } from "../options/connection-options.ts";
import { parseTimeout } from "../options/parse-values.ts";
import {
  describeFallbacks,
  formatBytes,
  formatCount,
  formatDuration,
  formatNumber,
  formatRanges,
  nameShards,
} from "../output/amounts.ts";
import type { Paint, TextFormat, TextStyle } from "../output/colors.ts";
import type { Output } from "../output/output.ts";
import { formatTable, type Shrink } from "../output/table.ts";
import { hangingLines, titledLines } from "../output/wrap.ts";
import {
  describeActivity,
  describeRates,
  type Look,
  type Rates,
  ratesBetween,
  watch,
} from "./watch-status.ts";

const TIMEOUT_MS = 5_000;

/** Maximum number of trainers that are named because their records changed nothing. */
const WASTEFUL_MAX = 8;

/** Flags of `pserver status`. */
interface StatusFlags extends AskingFlags {
  /** Pause between two looks in milliseconds; true for the default, undefined for one look. */
  readonly watch?: number | true;
}

const WATCH_MS = 2_000;

/** Adds the command `pserver status`, which shows the job, its hosts and trainers. */
export function registerStatus(program: Command, context: CliContext): void {
  const command = program
    .command("status")
    .summary("show the state of a job, its hosts and trainers")
    .description("show the state of a job, its hosts, parameters and trainers");
  command.option(
    "-w, --watch [duration]",
    "show it again and again, with rates, until Ctrl-C (default: each 2s)",
    parseTimeout,
  );
  addAskingOptions(command, TIMEOUT_MS).action(async (flags: StatusFlags) => {
    const output = openOutput(context, flags);
    const { watch: pause } = flags;
    await withAdmin(context, flags, async (admin) => {
      if (pause === undefined) show(output, await readJobStatus(admin, flags.job));
      else await watchJob(context, output, admin, flags.job, pause === true ? WATCH_MS : pause);
    });
  });
  addHelp(command, {
    "With --json": [
      '  {"job","state","epoch","by","parameters":{"count","ready","blocks","bytes"},',
      '  "hosts":[{"id","shards",…}],"trainers":[…],"shards":[{"shard","state",…}],',
      '  "declared":{"parameters","heldBytes","quotas","trainers"},',
      '  "synchronization":{"mode",…},"members":{"revision","started","trainers"},',
      '  "archivers":[{"machine","pid","shards",…}],"stoppedArchivers":[…],',
      '  "tape":{"messages","bytes","bytesMax","trimmedToMs"}, the last once older lines were dropped,',
      '  "rewind":{"id","begunMs","at","goneBack":[shard, …]} while a rewind is not complete,',
      '  "replicas":{"wanted","missing":[…],"lacking":[{"stream","copies"}]}} with --replicas above 1;',
      '  with --watch also "rates":{"appliedPerSecond",…}, or {"error"} while hosts do not answer;',
      "  the job is uninitialized, initializing or ready, a shard is serving, catching-up, unowned, ….",
      '  Where trainers keep step, each shard has "steps":{"revision","members","closed"}; where',
      '  they contribute to fragments, "rounds":{"revision","members","fragments","closed",',
      '  "processed","merged","late","dropped","keptBytes"}: the last but one are',
      '  {"contributions","steps","tokens"}.',
    ],
    Examples: [
      "  pserver status",
      "  pserver status --job mnist --json",
      "  pserver status --watch 10s",
    ],
  });
}

function show(output: Output, status: JobStatus): void {
  if (output.json) output.value(status);
  else output.lines(describeStatus(status, output));
}

/** Shows the job until Ctrl-C; an error that can pass is shown in its place. */
async function watchJob(
  context: CliContext,
  output: Output,
  admin: JobAdmin,
  job: string,
  pauseMs: number,
): Promise<void> {
  let before: Look | undefined;
  await watch(context, output, pauseMs, async () => {
    const status = await readJobStatus(admin, job).catch((thrown: unknown) => {
      const error = ensureError(thrown);
      if (!error.retryable) throw error;
      return error;
    });
    if (status instanceof PserverError) {
      const text = `${status.code}: ${status.message}`;
      return { lines: [output.paint("warn", visible(text))], value: { error: status.toWire() } };
    }
    const now = { atMs: Date.now(), shards: status.shards };
    const rates = before && ratesBetween(before, now);
    before = now;
    return {
      lines: describeStatus(status, output, rates),
      value: { ...status, ...(rates && { rates }) },
    };
  });
}

/** Writes the status for people. */
export function describeStatus(status: JobStatus, format: TextFormat, rates?: Rates): string[] {
  const { parameters, hosts, trainers, shards } = status;
  const { paint } = format;
  const row = (title: string, text: string, style?: TextStyle): string[] =>
    titledLines(title, text, format, style);
  const bytes = `${formatBytes(parameters.bytes)} in ${formatCount(parameters.blocks, "block")}`;
  const unready = parameters.count - parameters.ready;
  const notReady = unready === 0 ? "" : `, ${unready} not initialized yet`;
  const names = trainers.map(visible).join(", ");
  const lines = [
    ...hangingLines(
      `job ${paint("strong", status.job)}: `,
      describeState(status, paint),
      format.width,
    ),
    ...row("parameters", `${parameters.count}, ${bytes}${notReady}`),
    ...row("updates", describeUpdates(shards)),
    ...(rates === undefined ? [] : row("rates", describeRates(rates))),
    ...row("shards", `${shards.length} on ${formatCount(hosts.length, "host")}`),
    ...row("trainers", trainers.length === 0 ? "none" : `${trainers.length}: ${names}`),
  ];
  const activity = describeActivity(shards, Date.now());
  if (activity !== undefined) lines.push(...row("activity", activity));
  lines.push(...row("declared", describeDeclared(status.declared)));
  if (status.tape !== undefined) lines.push(...row("tape", describeTape(status.tape)));
  const lacking = describeLackingReplicas(status.replicas);
  if (lacking !== undefined) lines.push(...row("copies", visible(lacking), "warn"));
  for (const archiver of status.archivers) {
    lines.push(...row("archiver", describeArchiver(archiver, shards, Date.now())));
  }
  for (const archiver of status.stoppedArchivers) {
    const text = `stopped: ${describeArchiver(archiver, shards, Date.now())}`;
    lines.push(...row("archiver", text, "warn"));
  }
  if (status.rewind !== undefined) {
    lines.push(...row("rewind", describeRewind(status.rewind), "warn"));
  }
  if (status.synchronization.mode === "diloco") {
    lines.push(...row("rounds", describeRounds(status)));
  } else if (status.synchronization.mode !== "async") {
    lines.push(...row("steps", describeSteps(status)));
  }
  for (const [state, numbers] of idleShards(shards)) {
    lines.push(...row("", `${nameShards(numbers)}: ${state}`, "warn"));
  }
  for (const progress of shards.flatMap((shard) => readTakeOver(shard) ?? [])) {
    lines.push(...row("", `shard ${progress.shard}: ${describeTakeOver(progress)}`));
  }
  for (const { shard, fallbacks } of fallenBack(shards)) {
    lines.push(...row("", `shard ${shard}: ${describeFallbacks(fallbacks)}`));
  }
  const reported = shards.filter(({ reportedLoss }) => reportedLoss !== undefined);
  if (reported.length > 0) {
    const numbers = nameShards(reported.map(({ shard }) => shard));
    const text = `${numbers}: a trainer has seen later records than there are`;
    lines.push(...row("", text, "warn"));
  }
  for (const { shard, undescribed, leftOut, thinned } of tapeGaps(shards)) {
    const over = `${thinned} beyond a trainer's share`;
    const counts = `${formatCount(undescribed, "record")} not described, ${leftOut} left out, ${over}`;
    lines.push(...row("", `tape of shard ${shard}: ${counts}`, "warn"));
  }
  for (const waste of rejectionsByTrainer(shards).slice(0, WASTEFUL_MAX)) {
    lines.push(...row("", describeWaste(waste), "warn"));
  }
  const columns = [{ title: "HOST" }, { title: "SHARDS" }];
  const rows = hosts.map((host) => [host.id, formatRanges(host.shards) || "none"]);
  const shrinks: Shrink[] = [
    { kind: "wrap", column: "SHARDS", to: 24 },
    { kind: "cut", column: "HOST", to: 16 },
    { kind: "wrap", column: "SHARDS", to: 8 },
  ];
  return [...lines, "", ...formatTable(columns, rows, format, shrinks)];
}

function describeRewind({ id, begunMs, at, goneBack }: ListedRewind): string {
  const begun = new Date(begunMs).toISOString();
  const back = goneBack.length === 0 ? "no shard" : `${nameShards(goneBack)} of ${at.length}`;
  return `not complete: ${id}, begun ${begun}, to the cut ${showCut(at)}; gone back: ${back}`;
}

/** Describes how often blocks have changed, and names the shards that did not say. */
function describeUpdates(shards: readonly ListedShard[]): string {
  const { applied, rejected, guarded, silent } = updatesOf(shards);
  const sums = `${formatNumber(applied)} applied, ${formatNumber(rejected)} rejected by the present owners`;
  const counts = `${sums}${describeGuarded(guarded)}`;
  if (silent.length === 0) return counts;
  if (silent.length === shards.length) return "not known";
  return `${counts}; not known of ${nameShards(silent)}`;
}

/** Describes what guards have done; nothing if they have let everything pass. */
function describeGuarded(guarded: UpdateCounts["guarded"]): string {
  const words = { reject: "rejected", clip: "clipped", "set-aside": "set aside" } as const;
  const counts = GUARD_ACTIONS.filter((action) => guarded[action] > 0);
  if (counts.length === 0) return "";
  const parts = counts.map((action) => `${formatNumber(guarded[action])} ${words[action]}`);
  return `; by guards: ${parts.join(", ")}`;
}

function describeDeclared({ parameters, heldBytes }: Declared): string {
  return `${formatCount(parameters, "parameter")}, ${formatBytes(heldBytes)} with optimizer state`;
}

/** Describes what the tape takes of its limit, and how far back it reaches if older lines were dropped. */
export function describeTape({ messages, bytes, bytesMax, trimmedToMs }: ListedTape): string {
  const size = `${formatCount(messages, "message")}, ${formatBytes(bytes)} of ${formatBytes(bytesMax)}`;
  return trimmedToMs === undefined
    ? size
    : `${size}; lines before ${new Date(trimmedToMs).toISOString()} were dropped`;
}

/** Describes an archiver: how far it is behind, and what is wrong with it. */
export function describeArchiver(
  archiver: ListedArchiver,
  shards: readonly ListedShard[],
  nowMs: number,
): string {
  const { machine, pid } = archiver;
  const { failure, silentMs, lagMs } = archiverState(archiver, nowMs);
  const parts = [
    `process ${pid} on ${visible(machine)}`,
    `${formatNumber(archiverLag(archiver, shards))} records behind`,
    ...(lagMs === undefined ? [] : [`not complete for ${formatDuration(lagMs)}`]),
    ...(silentMs === undefined ? [] : [`last heard of ${formatDuration(silentMs)} ago`]),
    ...(failure === undefined
      ? []
      : [`ended with ${visible(failure.code)}: ${visible(failure.message)}`]),
  ];
  return parts.join(", ");
}

function describeWaste({ trainer, rejected, unreadable }: TrainerRejections): string {
  const counts = [
    ...(rejected === 0
      ? []
      : [`${formatNumber(rejected)} units of work more on rejected records than on applied ones`]),
    ...(unreadable === 0 ? [] : [formatCount(unreadable, "unreadable record")]),
  ];
  return `of no use from ${visible(trainer)}: ${counts.join(", ")}`;
}

function describeSteps({ synchronization, members, shards }: JobStatus): string {
  const { started = false, trainers = [] } = members ?? {};
  const text = [synchronizationText(synchronization)];
  text.push(`${formatCount(trainers.length, "member")}${started ? "" : ", not enough yet"}`);
  const closed = closedSteps(shards);
  if (closed !== undefined) {
    const { everywhere, anywhere } = closed;
    const range = everywhere === anywhere ? "" : ` to ${anywhere}`;
    text.push(`step ${everywhere}${range} closed`);
  }
  return text.join("; ");
}

function describeRounds({ synchronization, members, shards }: JobStatus): string {
  const { started = false, trainers = [] } = members ?? {};
  const text = [synchronizationText(synchronization)];
  text.push(`${formatCount(trainers.length, "member")}${started ? "" : ", not enough yet"}`);
  const { fragments, closed, processed, merged, late, dropped } = roundsOf(shards);
  text.push(`${formatCount(closed, "round")} of ${formatCount(fragments, "fragment")} closed`);
  const fates = `${merged} merged, ${late} merged late, ${dropped} dropped`;
  text.push(`${formatCount(processed, "contribution")}: ${fates}`);
  return text.join("; ");
}

function describeState({ state, epoch, by }: JobStatus, paint: Paint): string {
  if (state === "uninitialized") return paint("warn", state);
  const who = `by ${visible(by)}, epoch ${epoch}`;
  if (state === "initializing") return `${paint("warn", state)} ${who}`;
  return `${paint("ok", state)}, initialized ${who}`;
}
