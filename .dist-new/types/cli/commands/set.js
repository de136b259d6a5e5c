import { tensorBytes } from "../../protocol/tensor.js";
import { addHelp, openOutput } from "../context.js";
import { withAdmin, withTrainer } from "../open-job.js";
import { addAskingOptions, givenTimeout, WHILE_IN_PROGRESS, } from "../options/connection-options.js";
import { formatBytes } from "../output/amounts.js";
import { readTensorFile } from "../tensor-files.js";
const TIMEOUT_MS = 60_000;
/** Adds the command `pserver set`, which overwrites the values of one parameter. */
export function registerSet(program, context) {
    const command = program
        .command("set")
        .summary("overwrite a parameter with values of a file")
        .description("overwrite the values of a parameter with those of a file")
        .argument("<name>", "the parameter")
        .argument("<file>", ".npy, .json, or .bin, the little-endian bytes in C order");
    addAskingOptions(command, TIMEOUT_MS, WHILE_IN_PROGRESS).action((name, file, flags) => runSet(context, { name, file }, flags, givenTimeout(command)));
    addHelp(command, {
        Files: [
            "  The file must have the parameter's element type and shape; nothing is sent otherwise.",
            "  JSON is an array, flat or nested, or what 'pserver get --json' prints.",
        ],
        "With --json": ['  {"name","bytes"} once every block has been overwritten.'],
        Examples: ["  pserver set w w.npy", "  echo '[0, 0.5, 1]' > b.json && pserver set b b.json"],
    });
}
async function runSet(context, { name, file }, flags, timeout) {
    const output = openOutput(context, flags);
    const info = await withAdmin(context, flags, (admin) => admin.parameter(name));
    const tensor = await readTensorFile(file, info);
    const bytes = tensorBytes(info.dtype, info.shape);
    await output
        .progress(`sending ${formatBytes(bytes)}`)
        .during(withTrainer(context, flags, (client) => client.setParams({ [name]: tensor }, { ...timeout, signal: context.signal })));
    if (output.json)
        output.value({ name, bytes });
    else
        output.message(`set ${name}: ${formatBytes(bytes)}`);
}
//# sourceMappingURL=set.js.map