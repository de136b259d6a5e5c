import { addHelp, openOutput } from "../../context.js";
import { resolvePointText, withHistory } from "../../history/with-history.js";
import { addHistoryOptions, HISTORY_PERMISSIONS, POINT_HELP, } from "../../options/history-options.js";
import { formatBytes, formatRecords } from "../../output/amounts.js";
/** Adds the command `pserver record`, which writes a span of a job's history into one file. */
export function registerRecord(program, context) {
    const command = program
        .command("record")
        .summary("write a span of history into one file")
        .description("write a span of a job's history into one file, such as for a bug report")
        .argument("<file>", "the file; one of this name is replaced")
        .option("--from <point>", "the beginning", "start")
        .option("--to <point>", "the end", "now");
    addHistoryOptions(command).action((file, flags) => runRecord(context, file, flags));
    addHelp(command, {
        "What it does": [
            "  Writes, for each shard, the newest snapshot at or before the beginning and the records after it",
            "  up to the end. The file holds values and gradients of the model. It appears whole or not at all;",
            "  other commands read it with --from-file FILE, without a broker.",
        ],
        Points: POINT_HELP,
        Permissions: HISTORY_PERMISSIONS,
        "With --json": [
            '  {"file","bytes","records","shards":[{"shard","from":{"generation","seq"},"to":{…}}]}',
        ],
        Examples: [
            '  pserver record bug.pserver --from "10m ago"',
            "  pserver record bug.pserver --from 3:1200 --to 3:1300 --archive /archives/mnist",
            "  pserver replay --to 3:1250 --from-file bug.pserver --out then.safetensors",
        ],
    });
}
async function runRecord(context, file, flags) {
    const output = openOutput(context, flags);
    const { signal } = context;
    await withHistory(context, flags, async ({ source }) => {
        const { cut: from } = await resolvePointText(context, output, source, flags.from);
        const { cut: to } = await resolvePointText(context, output, source, flags.to);
        // Loaded here, so that other commands start faster.
        const { writeRecording } = await import("../../../history/archive/recorded-file.js");
        const recording = await output
            .progress("recording", formatRecords)
            .reported((onProgress) => writeRecording(file, source, { from, to }, { signal, onProgress }));
        const { bytes, records } = recording;
        if (output.json)
            output.value({ file, ...recording });
        else
            output.message(`wrote ${formatRecords(records)}, ${formatBytes(bytes)}: ${file}`);
    });
}
//# sourceMappingURL=record.js.map