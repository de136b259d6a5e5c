import { bucketStream, JobSubjects, jobOfStream, PserverError } from "../../protocol/index.js";
import { openJetStream } from "../../transport/jetstream.js";
import { Journal } from "../journal/journal.js";
import { openBucket, openExistingBucket } from "../journal/kv-bucket.js";
import { ensureSnapshotStream } from "../journal/snapshot-store.js";
import { brokerCall, probeStorage, streamExists } from "../journal/streams.js";
import { readTapeStorage } from "../journal/tape-writer.js";
import { EtcdLeases } from "./etcd-leases.js";
import { hasRemovalFlag, journalSettings, leasesIn, parseSettings, SETTINGS_KEY, settleSettings, } from "./job-settings.js";
import { BrokerProbe, KvLeases } from "./leases.js";
/** The shortest time that the broker gets for one request about a lease. */
const LEASE_TIMEOUT_MS_MIN = 1_000;
/** The journal limit of a shard where the broker has space for it, and the lowest with which a job is made. */
const JOURNAL_BYTES_MAX = { file: 2 * 1024 ** 3, memory: 256 * 1024 ** 2 };
const JOURNAL_BYTES_MIN = 16 * 1024 ** 2;
/** The share of the broker's space that journals may take; snapshots need the rest. */
const JOURNAL_SHARE = 0.6;
/**
 * Opens a job, which is made with the wanted settings if it does not exist.
 * @throws JOB_EXISTS if it exists with other settings than those wanted, NO_SPACE if the broker has no
 * space for it.
 */
export async function openJob(opening) {
    const { connection, manager, subjects, wanted, etcd } = opening;
    const bucket = await openBucket({
        connection,
        bucket: subjects.bucket(),
        storage: "file",
        // The number of shards of an existing job is in its settings, which are in the bucket.
        ...(wanted.replicas === undefined ? {} : { replicas: wanted.replicas }),
    });
    const settling = {
        bucket,
        job: subjects.job,
        findJournalBytes: (journal, shards) => findJournalBytes(manager, subjects, journal, shards),
    };
    const settings = await settleSettings(settling, { ...wanted, leases: leasesIn(etcd) });
    const leases = etcd === undefined
        ? await openKvLeases(connection, subjects, settings)
        : openEtcdLeases(connection, etcd, settings.leaseMs);
    await ensureSnapshotStream(manager, subjects, settings.replicas);
    const tapeStorage = async () => settings.tape ? await readTapeStorage(manager, subjects) : undefined;
    const created = await bucket.created();
    return { settings, bucket, created, manager, leases, tapeStorage };
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
async function openKvLeases(connection, subjects, { leaseMs, replicas }) {
    const bucket = await openBucket({
        connection,
        bucket: subjects.leaseBucket(),
        storage: "file",
        replicas,
        ttlMs: leaseMs,
        timeoutMs: leaseTimeoutMs(leaseMs),
    });
    return new KvLeases(bucket);
}
/**
 * Returns the largest limit of one journal, halving from the default, for which the broker has space on every shard.
 * @throws NO_SPACE if it has none for the lowest.
 */
export async function findJournalBytes(manager, subjects, storage, shards) {
    for (let bytes = JOURNAL_BYTES_MAX[storage]; bytes >= JOURNAL_BYTES_MIN; bytes /= 2) {
        const needed = Math.ceil((bytes * shards) / JOURNAL_SHARE);
        if (await probeStorage(manager, subjects, storage, needed))
            return bytes;
    }
    throw new PserverError("NO_SPACE", `the broker has no space for ${shards} journals of ${JOURNAL_BYTES_MIN} bytes`, { expected: shards * JOURNAL_BYTES_MIN });
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
 * @throws BAD_NAME if the broker holds no such job; NO_JETSTREAM, JETSTREAM_UNAVAILABLE, DENIED, TIMEOUT.
 */
export async function openStoredJob(connection, job) {
    const subjects = new JobSubjects(job);
    const client = openJetStream(connection);
    const manager = await client.jetstreamManager(false);
    const name = subjects.bucket();
    const stream = bucketStream(name);
    const exists = await brokerCall(`looking for the stream ${stream}`, { stream }, () => streamExists(manager, stream));
    if (!exists)
        throw noSuchJob(job);
    const bucket = await openExistingBucket(connection, name);
    const stored = (await bucket.read(SETTINGS_KEY))?.value;
    if (stored === undefined || hasRemovalFlag(stored))
        throw noSuchJob(job);
    const settings = parseSettings(stored);
    const journalOf = (shard) => new Journal({ manager, client, subjects, settings: journalSettings(settings), shard });
    return { subjects, client, manager, bucket, settings, journalOf };
}
//# sourceMappingURL=open-job.js.map