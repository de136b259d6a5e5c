import { noSuchJob } from "../../actors/job/open-job.js";
import { PserverError } from "../../protocol/errors.js";
import { addHelp, confirm, openOutput } from "../context.js";
import { STORE_TIMEOUT_MS, withStore } from "../open-job.js";
import { addConnectionOptions, addOutputOptions, addTimeoutOption, } from "../options/connection-options.js";
import { addEtcdPlaceOptions, toEtcdSetting } from "../options/host-options.js";
import { parseJob } from "../options/parse-values.js";
import { formatCount } from "../output/amounts.js";
/** Adds the command `pserver remove`, which removes a job for good. */
export function registerRemove(program, context) {
    const command = program
        .command("remove")
        .summary("remove a job for good, with its history")
        .description("remove a job for good, with its values, journals and history")
        .argument("<job>", "the job", parseJob)
        .option("-y, --yes", "do not ask");
    addOutputOptions(addEtcdPlaceOptions(addTimeoutOption(addConnectionOptions(command), STORE_TIMEOUT_MS))).action((job, flags) => removeJob(context, { ...flags, job }));
    addHelp(command, {
        "What it does": [
            "  It refuses while a host of the job is alive. To complete an interrupted removal, repeat it: until",
            "  then no host can join the job, or create a new one of its name. Saved models stay.",
        ],
        Permissions: ["  The user needs the JetStream API, like the user that hosts store with."],
        "With --json": ['  {"job","removed":[name, …]}: the streams and keys that were removed.'],
        Examples: [
            "  pserver remove mnist",
            "  pserver remove mnist --yes",
            "  pserver remove mnist --etcd http://127.0.0.1:2379",
        ],
    });
}
async function removeJob(context, flags) {
    const { job, yes, timeout } = flags;
    const output = openOutput(context, flags);
    // Loaded here, so that other commands start faster.
    const { JobRemoval } = await import("../../actors/job/remove-job.js");
    await withStore(context, flags, async (connection) => {
        const etcd = await openEtcd(flags, job);
        try {
            const removal = new JobRemoval({ connection, job, etcd, timeoutMs: timeout });
            const streams = await removal.plan();
            if (streams.length === 0)
                throw noSuchJob(job);
            const question = `Remove job ${job} for good, with its ${formatCount(streams.length, "stream")}?`;
            if (yes !== true && !(await confirm(context, question))) {
                throw new PserverError("ABORTED", `job ${job} stays as it is`, { job });
            }
            const removed = [];
            await removal.run((name) => {
                context.signal.throwIfAborted();
                removed.push(name);
                if (!output.json)
                    output.lines([`removed ${name}`]);
            });
            if (output.json)
                output.value({ job, removed });
        }
        finally {
            etcd?.client.close();
        }
    });
}
async function openEtcd(flags, job) {
    const settings = toEtcdSetting(flags);
    if (settings === undefined)
        return undefined;
    const { openEtcdSpace } = await import("../../actors/job/etcd-space.js");
    return await openEtcdSpace(settings, job, flags.timeout);
}
//# sourceMappingURL=remove.js.map