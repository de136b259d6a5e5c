import { tensorBytes } from "../../protocol/tensor.js";
import { addHelp, openOutput } from "../context.js";
import { withAdmin, withTrainer } from "../open-job.js";
import { addAskingOptions, givenTimeout, WHILE_IN_PROGRESS, } from "../options/connection-options.js";
import { formatBytes } from "../output/amounts.js";
import { describeUnknown, describeUpdates, describeVersion, summarizeTensor, versionEntries, } from "../output/tensor-summary.js";
import { checkTensorTarget, encodeJsonTensor, writeTensorFile } from "../tensor-files.js";
const TIMEOUT_MS = 60_000;
/** Adds the command `pserver get`, which prints the values of one parameter. */
export function registerGet(program, context) {
    const command = program
        .command("get")
        .summary("print the values of a parameter, or save them")
        .description("print the values of a parameter, or write them to a file")
        .argument("<name>", "the parameter")
        .option("--out <file>", "write to .npy, .json, or .bin, the little-endian bytes in C order");
    addAskingOptions(command, TIMEOUT_MS, WHILE_IN_PROGRESS).action((name, flags) => runGet(context, name, flags, givenTimeout(command)));
    addHelp(command, {
        "With --json": [
            '  {"name","dtype","shape","version","updates","values"}, all values flat in C order; 64-bit',
            '  integers, NaN and infinities as strings. With --out: {"file","bytes","version","updates"}.',
            '  The version is {"least","most"} of the blocks just before the values were read, which may be',
            "  newer.",
        ],
        Examples: [
            "  pserver get w               # the first and last values",
            "  pserver get w --json > w.json",
            "  pserver get w --out w.npy   # numpy.load('w.npy')",
        ],
    });
}
async function runGet(context, name, flags, timeout) {
    const output = openOutput(context, flags);
    const { signal } = context;
    // Checked before the values are read, which may take long.
    if (flags.out !== undefined)
        await checkTensorTarget(flags.out);
    // Asked first, because the client would wait for a job that is not initialized.
    const { info, versions } = await withAdmin(context, flags, async (admin) => {
        const found = await admin.parameter(name);
        // Asked before the values are read, so the values have these versions or newer ones.
        return { info: found, versions: await admin.versions([name]) };
    });
    const known = versions.versions.get(name);
    const bytes = tensorBytes(info.dtype, info.shape);
    const tensor = await output
        .progress(`reading ${formatBytes(bytes)}`)
        .during(withTrainer(context, flags, (client) => client.pullFull(name, { ...timeout, signal })));
    if (flags.out !== undefined) {
        const progress = output.progress("writing");
        const onProgress = (doneBytes) => progress.update(doneBytes, bytes);
        const options = { signal, onProgress };
        const written = await writeTensorFile(flags.out, name, tensor, options).finally(() => progress.clear());
        if (output.json)
            output.value({ file: flags.out, bytes: written, ...versionEntries(known) });
        else
            output.message(`wrote ${formatBytes(written)} to ${flags.out}`);
    }
    else if (output.json) {
        await output.stream(encodeJsonTensor(name, tensor, versionEntries(known)), signal);
    }
    else {
        const facts = [`version ${describeVersion(known)}`, `updates ${describeUpdates(known)}`];
        output.lines(summarizeTensor(name, tensor, facts, output.width));
    }
    const unknown = describeUnknown(versions);
    if (unknown !== undefined)
        output.warning(unknown);
}
//# sourceMappingURL=get.js.map