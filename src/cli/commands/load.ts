import { type Command, InvalidArgumentError, Option } from "commander";
import { openModel } from "../../model-files/index.ts";
import type { ParameterConfigInput } from "../../protocol/config/index.ts";
import { type CliContext, openOutput } from "../context.ts";
import { helpText } from "../help-text.ts";
import { loadModel } from "../job/load-model.ts";
import { withTrainer } from "../job/open-job.ts";
import {
  addJobOptions,
  addTrainerOption,
  type TrainerFlags,
} from "../options/connection-options.ts";
import { addOutputOptions } from "../options/output-options.ts";
import { formatBytes, formatCount } from "../output/amounts.ts";
import type { OutputFlags } from "../output/output.ts";

const TIMEOUT_MS = 600_000;

interface LoadFlags extends TrainerFlags, OutputFlags {
  readonly learningRate?: number;
  readonly allowNonFinite?: boolean;
}

/** `pserver load`: initializes a job from a model file. */
export function registerLoad(program: Command, context: CliContext): void {
  const command = program
    .command("load")
    .description("initialize a job with the parameters of a model file")
    .argument("<path>", "a .safetensors, .npz or .tar file here, or a saved directory")
    .addOption(
      new Option("--learning-rate <rate>", "for gradients that come without one").argParser(
        parseRate,
      ),
    )
    .option("--allow-non-finite", "let values and updates hold NaN and infinities");
  addOutputOptions(addTrainerOption(addJobOptions(command, TIMEOUT_MS)))
    .action((path: string, flags: LoadFlags) => runLoad(context, path, flags))
    .addHelpText(
      "after",
      helpText({
        "An initialized job": [
          "  It is refused with ALREADY_INITIALIZED, and nothing is changed. An interrupted load",
          "  leaves the job uninitialized: load again.",
        ],
        "With --json": ['  {"parameters","bytes"} once the job is ready.'],
        Examples: [
          "  pserver load model.safetensors --learning-rate 0.1",
          "  pserver load --job mnist weights.npz",
        ],
      }),
    );
}

async function runLoad(context: CliContext, path: string, flags: LoadFlags): Promise<void> {
  const output = openOutput(context, flags);
  const config: ParameterConfigInput = {
    ...(flags.learningRate === undefined ? {} : { learningRate: flags.learningRate }),
    ...(flags.allowNonFinite === true ? { allowNonFinite: true } : {}),
  };
  const model = await openModel(path);
  const progress = output.progress("loading");
  try {
    const loaded = await withTrainer(context, flags, (client) =>
      loadModel(client, model.tensors, {
        config,
        timeoutMs: flags.timeout,
        signal: context.signal,
        onProgress: (doneBytes, totalBytes) => progress.update(doneBytes, totalBytes),
      }),
    ).finally(() => progress.clear());
    const { parameters, bytes } = loaded;
    if (output.json) output.value(loaded);
    else output.message(`loaded ${formatCount(parameters, "parameter")}, ${formatBytes(bytes)}`);
  } finally {
    await model.close();
  }
}

function parseRate(text: string): number {
  const rate = Number(text);
  if (text.trim() !== "" && Number.isFinite(rate)) return rate;
  throw new InvalidArgumentError(`expected a finite number; received ${JSON.stringify(text)}`);
}
