import type { Command } from "commander";
import { visible } from "../../protocol/visible.ts";
import { type CliContext, openOutput } from "../context.ts";
import type { Check, CheckStatus } from "../doctor/check.ts";
import { type DoctorFlags, runDoctor } from "../doctor/run-doctor.ts";
import { EXIT } from "../exit-codes.ts";
import { addHelp } from "../help-text.ts";
import { addAskingOptions } from "../options/asking-options.ts";
import type { Look } from "../output/colors.ts";
import { hangingLines } from "../output/wrap.ts";

const TIMEOUT_MS = 5_000;

/** `pserver doctor`: checks what a job needs, and says what to do about the rest. */
export function registerDoctor(program: Command, context: CliContext): void {
  const command = program
    .command("doctor")
    .description("check broker, permissions and hosts, and say what to do");
  command.option("--store <dir>", "check the disk of a pserver up on this machine too");
  addAskingOptions(command, TIMEOUT_MS).action(async (flags: DoctorFlags) => {
    const output = openOutput(context, flags);
    const checks = await runDoctor(context, flags);
    const failed = checks.some(({ status }) => status === "fail");
    if (output.json) output.value({ ok: !failed, checks });
    else output.lines(checks.flatMap((check) => describeCheck(check, output)));
    if (failed) context.setExitCode(EXIT.failure);
  });
  addHelp(command, {
    "Exit code": [
      "  1 if a check fails, else 0; warnings, and checks that this user may not do, are no failures.",
      "  Nothing is changed.",
    ],
    "With --json": [
      '  {"ok","checks":[{"name","status","message","advice"}]}; status is ok, warn, fail, or skip',
      "  for a check that this user may not do.",
    ],
    Examples: [
      "  pserver doctor --store .pserver",
      "  pserver doctor --url nats://broker:4222 --creds host.creds --job mnist",
    ],
  });
}

const MARKS: Readonly<Record<CheckStatus, string>> = {
  ok: "ok  ",
  warn: "warn",
  fail: "FAIL",
  skip: "-   ",
};

/** How each status is styled. */
const STYLES = { ok: "ok", warn: "warn", fail: "fail", skip: "faint" } as const;

/** A check for people: what was found, and below it what to do. */
export function describeCheck(
  { name, status, message, advice }: Check,
  { paint, width }: Look,
): string[] {
  const mark = `${paint(STYLES[status], MARKS[status])}  `;
  const lines = hangingLines(mark, `${name}: ${visible(message)}`, width);
  return advice === undefined ? lines : [...lines, ...hangingLines("      -> ", advice, width)];
}
