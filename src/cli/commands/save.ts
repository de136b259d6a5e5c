import type { Command } from "commander";
import { PserverError } from "../../protocol/errors.ts";
import { defined } from "../../protocol/fields.ts";
import { addHelp, type CliContext, openOutput } from "../context.ts";
import type { SaveAtFlags } from "../history/save-at.ts";
import { withTrainer } from "../open-job.ts";
import {
  type AskingFlags,
  addAskingOptions,
  givenTimeout,
  WHILE_IN_PROGRESS,
} from "../options/connection-options.ts";
import { addHistoryPlaceOptions, POINT_HELP } from "../options/history-options.ts";
import { formatBytes } from "../output/amounts.ts";

const TIMEOUT_MS = 600_000;

interface SaveFlags extends AskingFlags, SaveAtFlags {
  readonly timeout: number;
}

/** Adds the command `pserver save`, which has a host write the model into its model directory. */
export function registerSave(program: Command, context: CliContext): void {
  const command = program
    .command("save")
    .summary("save the model into a file")
    .description("have a host save the model, or write that of one exact moment here")
    .argument("<path>", "below a host's model directory, or here; the ending chooses the format")
    .option("--at <point>", "the model of this moment, into a file here")
    .option("--with-optimizer", "with what optimizers keep, into a .safetensors file here");
  addHistoryPlaceOptions(addAskingOptions(command, TIMEOUT_MS, WHILE_IN_PROGRESS)).action(
    async (path: string, flags: SaveFlags) => {
      if (flags.at === undefined && flags.withOptimizer !== true) {
        checkNoHistory(flags);
        await runSave(context, path, flags, givenTimeout(command));
      } else {
        // Loaded here, so that other commands start faster.
        const { saveAt } = await import("../history/save-at.ts");
        const { timeoutMs: timeout } = givenTimeout(command);
        const { timeout: _ofSave, ...others } = flags;
        const at = { ...others, ...defined({ timeout }) };
        await saveAt(context, openOutput(context, flags), path, at);
      }
    },
  );
  addHelp(command, {
    "Which moment": [
      "  Without --at a host writes what it reads, block after block: while trainers push, the blocks are",
      "  of different moments. With --at POINT, or --with-optimizer (then by default now), this command",
      "  rebuilds the model of exactly that cut from journals and snapshots, and writes it into a file on",
      "  this machine. Training goes on meanwhile, and no host has to run. It needs memory for the model",
      "  with its optimizer state, and a user like that of hosts.",
    ],
    "With the optimizer": [
      '  A .safetensors file that "pserver load" continues from: values, configurations, what optimizers',
      "  keep, and the number of updates. Sparse shards stay apart. Gradients of a step that was open are",
      "  left out. Other programs read the values from it as from any such file.",
    ],
    Points: POINT_HELP,
    Formats: [
      "  *.safetensors, *.npz (numpy), *.tar (PaddlePaddle); a directory if the path ends in / or in a",
      "  name without a dot. It appears whole or not at all, and only the host's user can read it.",
      "  Ctrl-C makes the host stop; an older file of this name stays.",
    ],
    "With --json": [
      '  {"file","bytes","format","host"}; the path of the file on the host\'s machine. With --at:',
      '  {"point":{…},"file","bytes","format"}.',
    ],
    Examples: [
      "  pserver save epoch-3.safetensors",
      "  pserver save --job mnist runs/7/model.npz --json",
      "  pserver save --at step:120 step-120.safetensors --with-optimizer",
    ],
  });
}

/** @throws BAD_VALUE for flags that only go with `--at`. */
function checkNoHistory({ archive, fromFile, broker }: SaveFlags): void {
  if (archive === undefined && fromFile === undefined && broker) return;
  const text = "--archive, --from-file, --no-broker: expected --at with them; received none";
  throw new PserverError("BAD_VALUE", text);
}

async function runSave(
  context: CliContext,
  path: string,
  flags: AskingFlags,
  timeout: { readonly timeoutMs?: number },
): Promise<void> {
  const output = openOutput(context, flags);
  const { signal } = context;
  const saved = await output
    .progress("saving")
    .reported((onProgress) =>
      withTrainer(context, flags, (client) =>
        client.saveModel(path, { ...timeout, signal, onProgress }),
      ),
    )
    .catch((error: unknown) => {
      if (signal.aborted)
        output.message("the host stops writing; an older file of this name stays");
      throw error;
    });
  const { file, bytes, format, host } = saved;
  if (output.json) output.value(saved);
  else output.message(`saved ${formatBytes(bytes)} as ${format}: ${file} on host ${host}`);
}
