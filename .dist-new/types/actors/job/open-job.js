import { nanos } from "@nats-io/transport-node";
import { bucketStream, ensureError, JobSubjects, jobOfStream, PserverError, } from "../../protocol/index.js";
import { openJetStream } from "../../transport/jetstream.js";
import { Journal } from "../journal/journal.js";
import { openBucket, openExistingBucket } from "../journal/kv-bucket.js";
import { brokerCall, streamExists, unlessMissing } from "../journal/streams.js";
import { readTapeStorage } from "../journal/tape/tape-store.js";
import { EtcdLeases } from "./etcd-leases.js";
import { forkIncomplete, hasRemovalFlag, isPendingFork, journalSettings, leasesIn, parseSettings, readSettings, requireSettings, settingsLost, settleSettings, } from "./job-settings.js";
import { BrokerProbe, KvLeases } from "./leases.js";
import { reportReplicas } from "./replica-report.js";
import { unfinishedRewind } from "./rewind-plan.js";
import { ensureSnapshots, readSettingsCopy } from "./settings-copy.js";
import { findJournalBytes, LEASES_BYTES, openEntries } from "./storage-plan.js";
/** The shortest time that the broker gets for one request about a lease. */
const LEASE_TIMEOUT_MS_MIN = 1_000;
/**
 * Opens a job, which is made with the wanted settings if it does not exist.
 * @throws JOB_EXISTS if it exists with other settings than those wanted, NO_SPACE if the broker has no
 * space for it.
 */
export async function openJob(opening) {
    const { connection, manager, subjects, wanted, etcd } = opening;
    // The settings of an existing job are in its bucket.
    const bucket = await openEntries(connection, subjects, wanted.replicas);
    const settling = {
        bucket,
        job: subjects.job,
        findJournalBytes: (journal, shards) => findJournalBytes(manager, subjects, journal, shards),
        hasSnapshots: () => hasSnapshots(manager, subjects),
    };
    const placed = { ...wanted, leases: leasesIn(etcd) };
    const settings = await settleSettings(settling, placed);
    const leases = etcd === undefined
        ? await openKvLeases(connection, manager, subjects, settings)
        : openEtcdLeases(connection, etcd, settings.leaseMs);
    await ensureSnapshots(manager, subjects, settings);
    await requireSettings(bucket, subjects.job, placed);
    const tapeStorage = async () => settings.tape ? await readTapeStorage(manager, subjects) : undefined;
    const replicas = async () => settings.replicas > 1
        ? reportReplicas(await streamsOfJob(manager, subjects.job), settings.replicas)
        : undefined;
    const created = await bucket.created();
    return {
        ...{ settings, bucket, created, manager, leases, tapeStorage, replicas },
        madeNow: () => madeNow(manager, bucketStream(subjects.bucket())),
        unfinishedRewind: () => unfinishedRewind(manager, subjects, bucket),
    };
}
async function madeNow(manager, stream) {
    return await brokerCall(`looking for the stream ${stream}`, { stream }, async () => {
        return (await unlessMissing(() => manager.streams.info(stream)))?.created;
    });
}
/**
 * Whether the broker holds snapshots of a job. A host that joined a job while it was removed may have left their stream
 * without any.
 */
async function hasSnapshots(manager, subjects) {
    const stream = subjects.snapshotStream();
    return await brokerCall(`looking for the stream ${stream}`, { stream }, async () => {
        const info = await unlessMissing(() => manager.streams.info(stream));
        return info !== undefined && info.state.last_seq > 0;
    });
}
/** Returns how long one request about a lease may take: it must fail in time to be repeated. */
export function leaseTimeoutMs(leaseMs) {
    return Math.max(LEASE_TIMEOUT_MS_MIN, leaseMs / 3);
}
function openEtcdLeases(connection, etcd, leaseMs) {
    const timeoutMs = leaseTimeoutMs(leaseMs);
    etcd.client.limit(timeoutMs);
    const probe = new BrokerProbe(connection, timeoutMs);
    return new EtcdLeases(etcd.client, etcd.keys.leases, leaseMs, probe);
}
/**
 * Opens the bucket of leases. One that a host has left which joined a former job of the name is kept as that job said:
 * then it is kept from now on as this one says.
 */
async function openKvLeases(connection, manager, subjects, { leaseMs, replicas }) {
    const bucket = subjects.leaseBucket();
    const timeoutMs = leaseTimeoutMs(leaseMs);
    const open = () => openBucket({
        ...{ connection, bucket, storage: "file", replicas, ttlMs: leaseMs, timeoutMs },
        bytesMax: LEASES_BYTES,
    });
    try {
        return new KvLeases(await open());
    }
    catch (error) {
        if (ensureError(error).code !== "JOB_EXISTS")
            throw error;
    }
    const stream = bucketStream(bucket);
    await brokerCall(`configuring the stream ${stream}`, { stream }, () => manager.streams.update(stream, { max_age: nanos(leaseMs), num_replicas: replicas }));
    return new KvLeases(await open());
}
/**
 * Lists the jobs on a broker, by name, each with its streams.
 * @throws DENIED for a user who may not list streams; NO_JETSTREAM, TIMEOUT, ….
 */
export async function listJobStreams(manager) {
    const found = new Map();
    await brokerCall("listing the streams of the broker", {}, async () => {
        for await (const info of manager.streams.list()) {
            const job = jobOfStream(info.config.name);
            if (job !== undefined)
                found.set(job, [...(found.get(job) ?? []), info]);
        }
    });
    return [...found]
        .map(([job, streams]) => ({ job, streams }))
        .sort((a, b) => (a.job < b.job ? -1 : 1));
}
/** Lists the streams of one job; none if there is no such job. @throws as {@link listJobStreams}, and BAD_NAME. */
export async function streamsOfJob(manager, job) {
    // Throws for a name that no job can have.
    const { job: name } = new JobSubjects(job);
    const jobs = await listJobStreams(manager);
    return [...(jobs.find((listed) => listed.job === name)?.streams ?? [])];
}
/** Makes the error for a broker that holds no job of this name. */
export function noSuchJob(job) {
    const message = `the broker holds no job ${job}: list its jobs with "pserver jobs"`;
    return new PserverError("BAD_NAME", message, { job });
}
/**
 * Opens a job that exists, without joining it; the connection stays the caller's.
 * @throws BAD_NAME if the broker holds no such job, JOB_DAMAGED if its settings are damaged or lost, JOB_EXISTS if it is
 * a fork that is not complete; NO_JETSTREAM, JETSTREAM_UNAVAILABLE, DENIED, TIMEOUT.
 */
export async function openStoredJob(connection, job) {
    const stored = await openAnyJob(connection, job);
    if (stored.problem !== undefined)
        throw stored.problem;
    return stored;
}
/**
 * Opens a job as {@link openStoredJob} does, also one whose settings are damaged or lost.
 * @throws as {@link openStoredJob}; JOB_DAMAGED only if there is no copy of the settings that can be read, either.
 */
export async function openAnyJob(connection, job) {
    const subjects = new JobSubjects(job);
    const client = openJetStream(connection);
    const manager = await client.jetstreamManager(false);
    const name = subjects.bucket();
    const stream = bucketStream(name);
    const exists = await brokerCall(`looking for the stream ${stream}`, { stream }, () => streamExists(manager, stream));
    const bucket = await openExistingBucket(connection, name);
    const found = exists ? await readSettings(bucket) : undefined;
    if (found === undefined && !(await hasSnapshots(manager, subjects)))
        throw noSuchJob(job);
    const problem = found === undefined ? settingsLost(job) : found.problem;
    const stored = problem === undefined ? found?.value : await readSettingsCopy(manager, subjects);
    if (stored === undefined)
        throw problem ?? settingsLost(job);
    if (hasRemovalFlag(stored))
        throw noSuchJob(job);
    if (isPendingFork(stored))
        throw forkIncomplete(job);
    const settings = parseSettings(stored);
    const journalOf = (shard) => new Journal({ manager, client, subjects, settings: journalSettings(settings), shard });
    const opened = { subjects, client, manager, bucket, settings, journalOf };
    return { ...opened, settingsEntry: stored, lacksBucket: !exists, ...(problem && { problem }) };
}
//# sourceMappingURL=open-job.js.map