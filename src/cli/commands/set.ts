import type { Command } from "commander";
import { tensorBytes } from "../../protocol/tensor.ts";
import { addHelp, type CliContext, openOutput } from "../context.ts";
import { withAdmin, withTrainer } from "../open-job.ts";
import {
  type AskingFlags,
  addAskingOptions,
  givenTimeout,
  WHILE_IN_PROGRESS,
} from "../options/connection-options.ts";
import { formatBytes } from "../output/amounts.ts";
import { readTensorFile } from "../tensor-files.ts";

const TIMEOUT_MS = 60_000;

/** Adds the command `pserver set`, which overwrites the values of one parameter. */
export function registerSet(program: Command, context: CliContext): void {
  const command = program
    .command("set")
    .summary("overwrite a parameter with values of a file")
    .description("overwrite the values of a parameter with those of a file")
    .argument("<name>", "the parameter")
    .argument("<file>", ".npy, .json, or .bin, the little-endian bytes in C order");
  addAskingOptions(command, TIMEOUT_MS, WHILE_IN_PROGRESS).action(
    (name: string, file: string, flags: AskingFlags) =>
      runSet(context, { name, file }, flags, givenTimeout(command)),
  );
  addHelp(command, {
    Files: [
      "  The file must have the parameter's element type and shape; nothing is sent otherwise.",
      "  JSON is an array, flat or nested, or what 'pserver get --json' prints.",
    ],
    "With --json": ['  {"name","bytes"} once every block has been overwritten.'],
    Examples: ["  pserver set w w.npy", "  echo '[0, 0.5, 1]' > b.json && pserver set b b.json"],
  });
}

async function runSet(
  context: CliContext,
  { name, file }: { readonly name: string; readonly file: string },
  flags: AskingFlags,
  timeout: { readonly timeoutMs?: number },
): Promise<void> {
  const output = openOutput(context, flags);
  const info = await withAdmin(context, flags, (admin) => admin.parameter(name));
  const tensor = await readTensorFile(file, info);
  const bytes = tensorBytes(info.dtype, info.shape);
  await output
    .progress(`sending ${formatBytes(bytes)}`)
    .during(
      withTrainer(context, flags, (client) =>
        client.setParams({ [name]: tensor }, { ...timeout, signal: context.signal }),
      ),
    );
  if (output.json) output.value({ name, bytes });
  else output.message(`set ${name}: ${formatBytes(bytes)}`);
}
