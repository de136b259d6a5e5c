import { mismatch, visible } from "../../../protocol/errors.js";
import { addHelp, openOutput } from "../../context.js";
import { pointEntry, rebuildWithProgress, resolvePointText, withHistory, } from "../../history/with-history.js";
import { STORE_TIMEOUT_MS, withStore } from "../../open-job.js";
import { addHistoryOptions, HISTORY_PERMISSIONS, POINT_HELP, } from "../../options/history-options.js";
import { parseJob } from "../../options/parse-values.js";
import { formatBytes, formatCount } from "../../output/amounts.js";
/**
 * Adds the command `pserver fork`, which makes a new job that begins with the state of a job at a point of its
 * history.
 */
export function registerFork(program, context) {
    const command = program
        .command("fork")
        .summary("make a new job from the state at a point")
        .description("make a new job that begins with the state of a job at a point, to train on from")
        .argument("[job]", "the job to begin from (default: that of --job)", parseJob)
        .requiredOption("--at <point>", "the point: a time, a position, a step, an update, now")
        .option("--as <name>", "the new job (default: JOB-fork)", parseJob);
    addHistoryOptions(command).action((job, flags) => runFork(context, job, { ...flags, job: job ?? flags.job }));
    addHelp(command, {
        "What it does": [
            "  The new job has the parameters, values and optimizer state of that point, and the settings of",
            "  the job. Trainers, sessions and members begin anew, steps with 1; gradients of a step that was",
            "  open are left out. Its leases are in the broker. The job itself is not changed. Hosts that are",
            "  started with --job NEW serve it. Until it is complete they do not: repeat a fork that was",
            '  interrupted, or remove what there is of the job with "pserver remove".',
        ],
        Points: POINT_HELP,
        Permissions: HISTORY_PERMISSIONS,
        "With --json": [
            '  {"point":{…},"job","of","parameters","bytes","unfinished":[name, …],"openBlocks"}: how many',
            "  parameters are ready, the names of those that were being initialized, and the number of",
            "  blocks that had gradients of an open step.",
        ],
        Examples: [
            '  pserver fork mnist --at "10m ago"             # the new job is mnist-fork',
            "  pserver fork mnist --at step:120 --as mnist-slower",
            "  pserver host --job mnist-slower",
        ],
    });
}
async function runFork(context, named, flags) {
    const output = openOutput(context, flags);
    await withHistory(context, flags, async ({ source }) => {
        if (named !== undefined && named !== source.job)
            throw ofOtherJob(source, named);
        const as = flags.as ?? parseJob(`${source.job}-fork`);
        const point = await resolvePointText(context, output, source, flags.at);
        const store = { ...flags, job: as, timeout: STORE_TIMEOUT_MS };
        const forked = await withStore(context, store, (connection, host) => fork(context, output, { source, point, connection, host, as }));
        if (output.json)
            output.value({ point: await pointEntry(point), ...forked, of: source.job });
        else
            describe(output, forked);
    });
}
async function fork(context, output, from) {
    // Loaded here, so that other commands start faster.
    const { forkJob } = await import("../../../history/continue/fork-job.js");
    const { knownSettings } = await import("../../../history/continue/new-job.js");
    const { source, point, connection, host, as } = from;
    const { signal } = context;
    const rebuild = await rebuildWithProgress(output, source, signal);
    return await forkJob({
        ...{ connection, host, job: as, of: source, at: point.cut, rebuild, signal },
        known: await knownSettings(connection, source.job),
    });
}
/** Returns the error for an archive or a file that is of another job than the one that was named. */
function ofOtherJob({ name, job }, received) {
    return mismatch("BAD_VALUE", name, `a history of job ${received}`, `one of job ${job}`);
}
function describe(output, { job, parameters, bytes, unfinished, openBlocks }) {
    const size = `${formatCount(parameters, "parameter")}, ${formatBytes(bytes)}`;
    output.message(`made job ${job}: ${size}; serve it with: pserver host --job ${job}`);
    if (unfinished.length > 0) {
        const names = unfinished.map(visible).join(", ");
        output.warning(`not initialized at that point, and so not in the job: ${names}`);
    }
    if (openBlocks > 0) {
        const blocks = formatCount(openBlocks, "block");
        output.warning(`gradients of a step that had not closed were left out, in ${blocks}`);
    }
}
//# sourceMappingURL=fork.js.map