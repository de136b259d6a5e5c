import type { Command } from "commander";
import type { ParameterInfo } from "../../protocol/lifecycle-messages.ts";
import { tensorBytes } from "../../protocol/tensor.ts";
import { type CliContext, openOutput } from "../context.ts";
import { helpText } from "../help-text.ts";
import { withHosts } from "../job/open-job.ts";
import {
  addJobOptions,
  addTrainerOption,
  type TrainerFlags,
} from "../options/connection-options.ts";
import { addOutputOptions } from "../options/output-options.ts";
import { formatBytes } from "../output/amounts.ts";
import type { Paint } from "../output/colors.ts";
import type { OutputFlags } from "../output/output.ts";
import { formatTable } from "../output/table.ts";
import { formatShape } from "../output/tensor-summary.ts";

const TIMEOUT_MS = 5_000;

/** `pserver ls`: the parameters of a job. */
export function registerLs(program: Command, context: CliContext): void {
  const command = program.command("ls").description("list the parameters of a job");
  addOutputOptions(addTrainerOption(addJobOptions(command, TIMEOUT_MS)))
    .action(async (flags: TrainerFlags & OutputFlags) => {
      const output = openOutput(context, flags);
      const { parameters } = await withHosts(context, flags, ({ requests }) =>
        requests.everything(),
      );
      if (output.json) output.value(parameters.map(listedParameter));
      else if (parameters.length === 0) output.message(`job ${flags.job} has no parameters`);
      else output.lines(describeParameters(parameters, output.paint));
    })
    .addHelpText(
      "after",
      helpText({
        "With --json": [
          '  A list of {"name","dtype","shape","bytes","blocks","epoch","ready","config"}, by name.',
        ],
        Examples: ["  pserver ls", "  pserver ls --json | jq -r '.[].name'"],
      }),
    );
}

/** A parameter as `--json` prints it. */
export function listedParameter(info: ParameterInfo): Readonly<Record<string, unknown>> {
  const { name, dtype, shape, epoch, ready, config, layout } = info;
  const bytes = tensorBytes(dtype, shape);
  return { name, dtype, shape, bytes, blocks: layout.blocks, epoch, ready, config };
}

/** The parameters as a table. */
export function describeParameters(parameters: readonly ParameterInfo[], paint: Paint): string[] {
  const columns = [
    { title: "NAME" },
    { title: "DTYPE" },
    { title: "SHAPE" },
    { title: "SIZE", align: "right" },
    { title: "BLOCKS", align: "right" },
    { title: "EPOCH", align: "right" },
    { title: "" },
  ] as const;
  const rows = parameters.map(({ name, dtype, shape, layout, epoch, ready }) => [
    name,
    dtype,
    formatShape(shape),
    formatBytes(tensorBytes(dtype, shape)),
    String(layout.blocks),
    String(epoch),
    ready ? "" : "not initialized yet",
  ]);
  return formatTable(columns, rows, paint);
}
