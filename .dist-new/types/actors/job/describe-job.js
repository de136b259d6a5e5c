import { asMap, bucketStream, defined, ensureError, JobSubjects, } from "../../protocol/index.js";
import { HOST_LEASES, hostOfKey } from "../host/shard-claims.js";
import { openExistingBucket } from "../journal/kv-bucket.js";
import { jobEntry } from "../lifecycle/machine.js";
import { hasRemovalFlag, isPendingFork, LEASES_IN_KV, parseSettings, readSettings, SETTINGS_KEY, } from "./job-settings.js";
import { reportReplicas } from "./replica-report.js";
import { settingsCopyIn } from "./settings-copy.js";
/** Describes a job; @throws TIMEOUT, DENIED, … if the broker does not answer. */
export async function describeJob(connection, { job, streams }) {
    const subjects = new JobSubjects(job);
    const names = new Set(streams.map(({ config }) => config.name));
    const bytes = streams.reduce((sum, { state }) => sum + state.bytes, 0);
    const rest = { job, bytes, streams: streams.length };
    const empty = { ...rest, shards: 0, journal: undefined, hosts: [], leases: LEASES_IN_KV };
    const snapshots = streams.find(({ config }) => config.name === subjects.snapshotStream());
    const bucket = names.has(bucketStream(subjects.bucket()))
        ? await openExistingBucket(connection, subjects.bucket())
        : undefined;
    const found = bucket && (await readSettings(bucket));
    const hasSnapshots = snapshots !== undefined && snapshots.state.last_seq > 0;
    if (found === undefined && !hasSnapshots)
        return { ...empty, state: "incomplete" };
    const isRemoved = found?.value !== undefined && hasRemovalFlag(found.value);
    const stored = found?.value ?? (snapshots && settingsCopyIn(snapshots.config));
    if (!isDescribed(stored))
        return { ...empty, state: isRemoved ? "removing" : "damaged" };
    const { shards, journal, leases, replicas: wanted } = parseSettings(stored);
    const hosts = await aliveHosts(connection, subjects, leases, names);
    const replicas = defined({ replicas: reportReplicas(streams, wanted) });
    const described = { ...rest, shards, journal, leases, hosts, ...replicas };
    if (isRemoved)
        return { ...described, state: "removing" };
    if (bucket === undefined || found?.value === undefined)
        return { ...described, state: "damaged" };
    if (isPendingFork(stored))
        return { ...described, state: "incomplete" };
    return { ...described, state: await lifecycleState(bucket) };
}
/** Whether settings say more than that a job is being removed whose settings were damaged. */
export function isDescribed(stored) {
    return stored !== undefined && asMap(stored, SETTINGS_KEY)["shards"] !== undefined;
}
async function lifecycleState(bucket) {
    try {
        return (await jobEntry.read({ bucket })).state;
    }
    catch (error) {
        if (ensureError(error).code !== "JOB_DAMAGED")
            throw error;
        return "damaged";
    }
}
/** Returns the ids of a job's hosts that are alive; undefined if its leases are not in the broker. */
export async function aliveHosts(connection, subjects, leases, streams) {
    if (leases !== LEASES_IN_KV)
        return undefined;
    const bucket = subjects.leaseBucket();
    if (!streams.has(bucketStream(bucket)))
        return [];
    const keys = await (await openExistingBucket(connection, bucket)).keys(HOST_LEASES);
    return keys.map(hostOfKey).sort();
}
//# sourceMappingURL=describe-job.js.map