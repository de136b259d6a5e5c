import { addHelp, openOutput } from "../context.js";
import { withTrainer } from "../open-job.js";
import { addAskingOptions, givenTimeout, WHILE_IN_PROGRESS, } from "../options/connection-options.js";
import { formatBytes } from "../output/amounts.js";
const TIMEOUT_MS = 600_000;
/** Adds the command `pserver save`, which has a host write the model into its model directory. */
export function registerSave(program, context) {
    const command = program
        .command("save")
        .description("have a host save the model below its model directory")
        .argument("<path>", "relative to that directory; the ending chooses the format");
    addAskingOptions(command, TIMEOUT_MS, WHILE_IN_PROGRESS).action((path, flags) => runSave(context, path, flags, givenTimeout(command)));
    addHelp(command, {
        Formats: [
            "  *.safetensors, *.npz (numpy), *.tar (PaddlePaddle); a directory if the path ends in / or in a",
            "  name without a dot. It appears whole or not at all, and only the host's user can read it.",
            "  Ctrl-C makes the host stop; an older file of this name stays.",
        ],
        "With --json": [
            '  {"file","bytes","format","host"}; the path of the file on the host\'s machine.',
        ],
        Examples: [
            "  pserver save epoch-3.safetensors",
            "  pserver save --job mnist runs/7/model.npz --json",
        ],
    });
}
async function runSave(context, path, flags, timeout) {
    const output = openOutput(context, flags);
    const { signal } = context;
    const saved = await output
        .progress("saving")
        .reported((onProgress) => withTrainer(context, flags, (client) => client.saveModel(path, { ...timeout, signal, onProgress })))
        .catch((error) => {
        if (signal.aborted)
            output.message("the host stops writing; an older file of this name stays");
        throw error;
    });
    const { file, bytes, format, host } = saved;
    if (output.json)
        output.value(saved);
    else
        output.message(`saved ${formatBytes(bytes)} as ${format}: ${file} on host ${host}`);
}
//# sourceMappingURL=save.js.map