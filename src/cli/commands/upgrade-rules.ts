import type { Command } from "commander";
import { addHelp, type CliContext, openOutput } from "../context.ts";

import { STORE_TIMEOUT_MS, withStore } from "../open-job.ts";
import {
  addConnectionOptions,
  addOutputOptions,
  addTimeoutOption,
  type JobFlags,
} from "../options/connection-options.ts";

import { parseJob } from "../options/parse-values.ts";
import type { OutputFlags } from "../output/output.ts";

type UpgradeFlags = JobFlags & OutputFlags;

/** `pserver upgrade-rules`: puts the present rules into force in a job that was made under older ones. */
export function registerUpgradeRules(program: Command, context: CliContext): void {
  const command = program
    .command("upgrade-rules")
    .description("let a job made by older hosts use what its present hosts can do, such as batches")
    .argument("<job>", "the job", parseJob);
  addOutputOptions(addTimeoutOption(addConnectionOptions(command), STORE_TIMEOUT_MS)).action(
    (job: string, flags: Omit<UpgradeFlags, "job">) => upgrade(context, { ...flags, job }),
  );
  addHelp(command, {
    "What it does": [
      "  A job keeps the rules that it was made under until this is called. It may be called while",
      "  trainers train: those that join afterwards use the new rules, the others go on as before.",
      "  Older hosts cannot serve the job any more, so update and restart all of its hosts first. An",
      "  interrupted upgrade is completed by repeating it.",
    ],
    Permissions: ["  The user needs the JetStream API, like the user that hosts store with."],
    "With --json": [
      '  {"job","from","to","shards"}; from and to are equal if nothing had to be done.',
    ],
    Examples: ["  pserver upgrade-rules mnist"],
  });
}

async function upgrade(context: CliContext, flags: UpgradeFlags): Promise<void> {
  const { job } = flags;
  const output = openOutput(context, flags);
  // Loaded here, so that other commands start faster.
  const { upgradeRules } = await import("../../actors/job/upgrade-rules.ts");
  await withStore(context, flags, async (connection, host) => {
    const upgraded = await upgradeRules({ connection, job, host });
    const { from, to } = upgraded;
    if (output.json) output.value(upgraded);
    else if (from === to) output.message(`job ${job} has rules ${to} already`);
    else output.message(`job ${job} has rules ${to} from now on; before, ${from}`);
  });
}
