import type { Command } from "commander";
import { openModel, type TensorSource } from "../../model-files/index.ts";
import { type ParameterConfig, toConfig } from "../../protocol/config/index.ts";
import { quoteName } from "../../protocol/names.ts";
import { type CliContext, openOutput } from "../context.ts";
import { addHelp } from "../help-text.ts";
import { loadModel } from "../job/load-model.ts";
import { withTrainer } from "../job/open-job.ts";
import {
  addConfigOptions,
  type ConfigFlags,
  hasConfig,
  toConfigs,
} from "../options/config-options.ts";
import {
  addJobOptions,
  addTrainerOption,
  type TrainerFlags,
} from "../options/connection-options.ts";
import { addOutputOptions } from "../options/output-options.ts";
import { formatBytes, formatCount } from "../output/amounts.ts";
import type { Output, OutputFlags } from "../output/output.ts";

const TIMEOUT_MS = 600_000;

interface LoadFlags extends TrainerFlags, ConfigFlags, OutputFlags {
  readonly overwrite?: boolean;
}

/** `pserver load`: initializes a job from a model file, or overwrites the values of an initialized one. */
export function registerLoad(program: Command, context: CliContext): void {
  const command = program
    .command("load")
    .description("initialize a job with the parameters of a model file")
    .argument("<path>", "a .safetensors, .npz, .h5, .hdf5 or .tar file here, or a saved directory")
    .option("--overwrite", "overwrite the values of a job that is initialized");
  addOutputOptions(addTrainerOption(addJobOptions(addConfigOptions(command), TIMEOUT_MS))).action(
    (path: string, flags: LoadFlags) => runLoad(context, path, flags),
  );
  addHelp(command, {
    "An initialized job": [
      "  It is refused with ALREADY_INITIALIZED, and nothing is changed. With --overwrite its",
      "  parameters get the values of the file, one after the other; what they are updated with",
      "  stays. Sparse shards, which a save joins, get their rows of the joined tensor back. An",
      "  interrupted load leaves the job uninitialized: load again.",
    ],
    Configuration: [
      "  A model file holds values only. The optimizer is given here; by default it is sgd with the",
      "  learning rate that each gradient brings. A --config for one parameter overrides one for",
      "  all, which overrides the other flags. Its entries are in docs/protocol.md.",
    ],
    "With --json": ['  {"parameters","bytes","overwritten"} once it is done.'],
    Examples: [
      "  pserver load model.safetensors --optimizer adamw --learning-rate 0.001",
      "  pserver load --job mnist weights.npz --overwrite",
      `  pserver load m.npz --config '{"clipNorm":1}' --config 'emb={"optimizer":"adagrad"}'`,
      "  pserver load m.npz --config @training.yaml",
    ],
  });
}

async function runLoad(context: CliContext, path: string, flags: LoadFlags): Promise<void> {
  const output = openOutput(context, flags);
  const model = await openModel(path);
  try {
    const configs = toConfigs(
      flags,
      model.tensors.map(({ header }) => header.name),
    );
    const overwrite = flags.overwrite === true;
    const options = { configs, overwrite, timeoutMs: flags.timeout, signal: context.signal };
    const loaded = await output
      .progress("loading")
      .reported((onProgress) =>
        withTrainer(context, flags, (client) =>
          loadModel(client, model.tensors, { ...options, onProgress }),
        ),
      );
    const { parameters, bytes, overwritten } = loaded;
    const what = `${formatCount(parameters, "parameter")}, ${formatBytes(bytes)}`;
    if (output.json) output.value(loaded);
    else output.message(`${overwritten ? "overwrote" : "loaded"} ${what}`);
    if (overwritten && hasConfig(flags)) {
      output.warning("the job was initialized before: its configuration stays as it was");
    }
    if (!overwritten) tellWithoutRate(output, model.tensors, configs);
  } finally {
    await model.close();
  }
}

/** Tells which parameters have no learning rate, so that each gradient must bring one. */
function tellWithoutRate(
  output: Output,
  tensors: readonly TensorSource[],
  configs: ReadonlyMap<string, ParameterConfig>,
): void {
  const without = tensors.filter(({ header: { name, dtype } }) => {
    const { learningRate, optimizer, static: isStatic } = configs.get(name) ?? toConfig();
    // Updates of integers are added without a learning rate.
    const isTrained = dtype.startsWith("float") && optimizer.name !== "none" && !isStatic;
    return isTrained && learningRate === undefined;
  });
  const [first] = without;
  if (first === undefined) return;
  const which =
    without.length === 1 ? quoteName(first.header.name) : `${without.length} parameters`;
  output.message(`no learning rate was given for ${which}: each gradient must bring one`);
}
