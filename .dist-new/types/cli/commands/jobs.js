import { describeLackingReplicas } from "../../client/admin/participants.js";
import { addHelp, openOutput } from "../context.js";
import { withJobs } from "../open-job.js";
import { addJobOptions, addOutputOptions } from "../options/connection-options.js";
import { formatBytes } from "../output/amounts.js";
import { formatTable } from "../output/table.js";
const TIMEOUT_MS = 5_000;
/** Adds the command `pserver jobs`, which lists the jobs that a broker holds, served or not. */
export function registerJobs(program, context) {
    const command = program.command("jobs").description("list the jobs that the broker holds");
    addOutputOptions(addJobOptions(command, TIMEOUT_MS)).action(async (flags) => {
        const output = openOutput(context, flags);
        // Loaded here, so that other commands start faster.
        const { describeJob } = await import("../../actors/job/describe-job.js");
        const jobs = await withJobs(context, flags, (found, connection) => Promise.all(found.map((streams) => describeJob(connection, streams))));
        if (output.json)
            output.value(jobs);
        else if (jobs.length === 0)
            output.message("the broker holds no job");
        else {
            output.lines(describeJobs(jobs, output));
            for (const { job, replicas } of jobs) {
                const lacking = describeLackingReplicas(replicas);
                if (lacking !== undefined)
                    output.warning(`job ${job}: ${lacking}`);
            }
        }
    });
    addHelp(command, {
        Permissions: [
            "  The user needs the JetStream API, like the user that hosts store with; its inbox is that of",
            "  a host of --job.",
        ],
        "With --json": [
            '  A list of {"job","state","shards","journal","hosts","leases","bytes","streams","replicas"}; the state is',
            "  uninitialized, initializing, ready, removing, damaged or incomplete.",
        ],
        Examples: ["  pserver jobs", "  pserver jobs --json | jq -r '.[].job'"],
    });
}
/** Writes the jobs as a table. */
export function describeJobs(jobs, format) {
    const columns = [
        { title: "JOB" },
        { title: "STATE" },
        { title: "HOSTS", align: "right" },
        { title: "SHARDS", align: "right" },
        { title: "JOURNAL" },
        { title: "STORED", align: "right" },
    ];
    const rows = jobs.map(({ job, state, hosts, shards, journal, bytes }) => [
        job,
        state,
        hosts === undefined ? "in etcd" : String(hosts.length),
        String(shards),
        journal ?? "",
        formatBytes(bytes),
    ]);
    const shrinks = [
        { kind: "drop", column: "JOURNAL" },
        { kind: "cut", column: "JOB", to: 16 },
        { kind: "drop", column: "SHARDS" },
        { kind: "drop", column: "STORED" },
    ];
    return formatTable(columns, rows, format, shrinks);
}
//# sourceMappingURL=jobs.js.map