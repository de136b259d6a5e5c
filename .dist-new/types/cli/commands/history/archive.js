import { Option } from "commander";
import { addHelp, openLog, openOutput } from "../../context.js";
import { addConnectionOptions, addJobOption, addOutputOptions, } from "../../options/connection-options.js";
import { HISTORY_PERMISSIONS } from "../../options/history-options.js";
import { parseTimeout } from "../../options/parse-values.js";
/** How long hosts wait for an archiver that has gone silent, unless it asks for another time. */
const GRACE_MS = 600_000;
/** Adds the command `pserver archive`, which copies a job's history into a directory before hosts trim it. */
export function registerArchive(program, context) {
    const command = program
        .command("archive")
        .summary("copy a job's history before hosts trim it")
        .description("copy a job's journals, snapshots and tape into a directory before hosts trim them")
        .argument("<dir>", "the directory, made if it is not there");
    addOutputOptions(addJobOption(addConnectionOptions(command)))
        .option("--once", "copy what is there, and end")
        .addOption(new Option("--grace <duration>", "how long hosts keep what is not copied once the archiver is gone")
        .argParser(parseTimeout)
        .default(GRACE_MS, "10m"))
        .option("--check", "read the whole archive instead, and say what it has, lacks and is damaged")
        .action(async (directory, flags) => {
        if (flags.check === true) {
            const { checkDirectory } = await import("../../history/check-directory.js");
            await checkDirectory(context, openOutput(context, flags), directory);
        }
        else {
            const { followJob } = await import("../../history/follow-job.js");
            await followJob(context, openLog(context, flags), directory, flags);
        }
    });
    addHelp(command, {
        "What it does": [
            "  Follows the job until it is interrupted, and goes on where it stopped when it is started again",
            "  on the same directory, also after it was killed. Hosts do not trim what a running archiver has",
            "  not copied, up to as many bytes again as they retain (--retain); what was trimmed before it was",
            '  copied is told. Other commands read it with --archive DIR; see "pserver replay --help".',
        ],
        Permissions: HISTORY_PERMISSIONS,
        "Exit code": ["  With --check: 1 if a file is damaged, else 0."],
        "With --json": [
            '  A line now and then, and at the end: {"job","directory","behindRecords","copiedBytes","shards":',
            '  [{"shard","record":{"generation","seq"},"snapshot","behindRecords","missing":[{"generation",',
            '  "firstSeq","lastSeq"}],"tapeMessages","copiedBytes"}]}. With --check: {"directory","shards":',
            '  [{"shard","spans","snapshots","missing","tape":{"messages","missing"}}],"damage":[{"code",',
            '  "message","details"}]}.',
        ],
        Examples: [
            "  pserver archive /archives/mnist --job mnist",
            "  pserver archive /archives/mnist --job mnist --once",
            "  pserver archive /archives/mnist --check",
        ],
    });
}
//# sourceMappingURL=archive.js.map