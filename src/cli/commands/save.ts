import type { Command } from "commander";
import { type CliContext, openOutput } from "../context.ts";
import { helpText } from "../help-text.ts";
import { withTrainer } from "../job/open-job.ts";
import {
  addJobOptions,
  addTrainerOption,
  type TrainerFlags,
} from "../options/connection-options.ts";
import { addOutputOptions } from "../options/output-options.ts";
import { formatBytes } from "../output/amounts.ts";
import type { OutputFlags } from "../output/output.ts";

const TIMEOUT_MS = 600_000;

/** `pserver save`: has a host write the model into its model directory. */
export function registerSave(program: Command, context: CliContext): void {
  const command = program
    .command("save")
    .description("have a host save the model below its model directory")
    .argument("<path>", "relative to that directory; the ending chooses the format");
  addOutputOptions(addTrainerOption(addJobOptions(command, TIMEOUT_MS)))
    .action(async (path: string, flags: TrainerFlags & OutputFlags) => {
      const output = openOutput(context, flags);
      const options = { timeoutMs: flags.timeout, signal: context.signal };
      const saved = await output
        .progress("saving")
        .during(withTrainer(context, flags, (client) => client.saveModel(path, options)));
      if (output.json) output.value(saved);
      else output.message(`saved ${formatBytes(saved.bytes)} as ${saved.format}: ${saved.file}`);
    })
    .addHelpText(
      "after",
      helpText({
        Formats: [
          "  *.safetensors, *.npz (numpy), *.tar (PaddlePaddle), any other name: a directory.",
          "  The file appears whole or not at all.",
        ],
        "With --json": ['  {"file","bytes","format"}; the file as the host sees it.'],
        Examples: [
          "  pserver save epoch-3.safetensors",
          "  pserver save --job mnist runs/7/model.npz --json",
        ],
      }),
    );
}
