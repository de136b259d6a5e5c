import { bucketStream, JobSubjects, PserverError } from "../../protocol/index.js";
import { openJetStream } from "../../transport/jetstream.js";
import { HOST_LEASES, hostOfKey } from "../host/shard-claims.js";
import { ENTRY_FORMAT, openExistingBucket } from "../journal/kv-bucket.js";
import { brokerCall, deleteStreamAsMade, unlessMissing, } from "../journal/streams.js";
import { aliveHosts, isDescribed } from "./describe-job.js";
import { hasRemovalFlag, LEASES_IN_KV, leasesIn, parseSettings, readSettings, SETTINGS_KEY, settingsChanged, withRemovalFlag, } from "./job-settings.js";
import { streamsOfJob } from "./open-job.js";
import { settingsCopyIn } from "./settings-copy.js";
/**
 * Removes a job for good. First its settings get a flag, so that no host joins the job or makes it again from what is
 * left; then its streams are listed, and the bucket that holds the settings is removed last. An interrupted removal is
 * completed by another one. One that goes on late leaves alone what was made under the job's name meanwhile.
 */
export class JobRemoval {
    #options;
    #subjects;
    /** When the bucket of the job was made that was planned to be removed; undefined before. */
    #planned;
    constructor(options) {
        this.#options = options;
        this.#subjects = new JobSubjects(options.job);
    }
    /**
     * Lists the streams that would be removed, the bucket of settings last; none if there is no such job.
     * @throws JOB_EXISTS while a host of the job is alive, BAD_VALUE if its leases are in an etcd that was not given;
     * DENIED for a user who may not list streams.
     */
    async plan() {
        const found = await this.#find();
        await this.#checkUnused(found);
        this.#planned = this.#bucketStream(found.streams)?.created;
        return found.streams.map(({ name }) => name);
    }
    /**
     * Removes the job; `onRemoved` is called for each stream and key.
     * @throws as {@link JobRemoval.plan}, before anything is removed; BUSY if somebody else changes the job's settings,
     * or if the name has been used again since the plan or during the removal: what was made then stays.
     */
    async run(onRemoved) {
        const found = await this.#find();
        this.#requireSame(this.#planned, found.streams);
        const { job } = this.#options;
        const { streams, etcdKeys } = await this.#fence(found);
        await this.#removeEtcdKeys(etcdKeys, onRemoved);
        const manager = await this.#manager();
        for (const stream of streams) {
            // A missing stream was removed by another removal of the same job.
            const wasThere = await brokerCall(`removing the stream ${stream.name}`, { job }, () => deleteStreamAsMade(manager, stream));
            if (wasThere)
                onRemoved(stream.name);
        }
    }
    async #find() {
        const { connection, job } = this.#options;
        const infos = await streamsOfJob(await this.#manager(), job);
        const streams = this.#sorted(infos);
        const name = this.#subjects.bucket();
        const bucket = this.#bucketStream(streams) && (await openExistingBucket(connection, name));
        const revision = bucket === undefined ? 0 : await bucket.lastRevision();
        const settings = bucket && (await readSettings(bucket));
        const snapshots = infos.find(({ config }) => config.name === this.#subjects.snapshotStream());
        const known = settings?.value ?? (snapshots && settingsCopyIn(snapshots.config));
        return { streams, bucket, revision, settings, known };
    }
    /**
     * Writes the flag into the settings, unless they have it, and lists what there is of the job; checks before and after
     * that no host is alive.
     */
    async #fence(found) {
        const { bucket, settings, known } = found;
        const { job, isOwn } = this.#options;
        if (isOwn !== undefined && (settings?.value === undefined || !isOwn(settings.value))) {
            throw settingsChanged(job);
        }
        await this.#checkUnused(found);
        const flagged = bucket && (await this.#flag(bucket, found));
        const belongings = await this.#belongings(found);
        try {
            // A host that read the settings before the flag was written may have joined since.
            await this.#checkUnused({ known, streams: belongings.streams });
        }
        catch (error) {
            if (flagged !== undefined && known !== undefined) {
                await bucket?.update(SETTINGS_KEY, known, flagged);
            }
            throw error;
        }
        return belongings;
    }
    /** Writes the flag into the settings; returns their new revision, undefined if they have it already. @throws BUSY */
    async #flag(bucket, { settings, known, revision }) {
        if (settings?.value !== undefined && hasRemovalFlag(settings.value))
            return undefined;
        const flag = withRemovalFlag(known ?? { format: ENTRY_FORMAT });
        const flagged = settings?.value === undefined
            ? await bucket.overwrite(SETTINGS_KEY, flag, revision)
            : await bucket.update(SETTINGS_KEY, flag, settings.revision);
        if (flagged === undefined)
            throw settingsChanged(this.#options.job);
        return flagged;
    }
    /**
     * Lists what there is of the job, once its settings have the flag: a host that joined at the same time may have made
     * streams since they were looked at.
     * @throws BUSY if the name has been used again since, or if the flag was taken back because a host is alive.
     */
    async #belongings({ streams: before, bucket }) {
        const { etcd, job } = this.#options;
        const manager = await this.#manager();
        const streams = bucket === undefined ? before : this.#sorted(await streamsOfJob(manager, job));
        const etcdKeys = etcd === undefined
            ? []
            : [
                ...(await etcd.client.list(etcd.keys.leases)),
                ...(await etcd.client.list(etcd.keys.done)),
            ];
        const made = this.#bucketStream(before);
        if (bucket === undefined || made === undefined)
            return { streams, etcdKeys };
        // The list is that of this job if its bucket is still there: it is removed last, and made first.
        const stored = await brokerCall(`looking for the stream ${made.name}`, { job }, () => unlessMissing(() => manager.streams.info(made.name)));
        // Another removal has completed.
        if (stored === undefined)
            return { streams: [], etcdKeys: [] };
        this.#requireSame(made.created, [{ ...made, created: stored.created }]);
        const settings = await bucket.read(SETTINGS_KEY);
        if (settings !== undefined && !hasRemovalFlag(settings.value))
            throw settingsChanged(job);
        return { streams, etcdKeys };
    }
    /** @throws BUSY if the bucket among these streams is another one than that. */
    #requireSame(created, streams) {
        const { job } = this.#options;
        const found = this.#bucketStream(streams)?.created;
        if (created === undefined || found === undefined || created === found)
            return;
        throw new PserverError("BUSY", `job ${job}: its name has been used again meanwhile`, { job });
    }
    async #checkUnused({ known, streams }) {
        const names = new Set(streams.map(({ name }) => name));
        const hasLeaseBucket = names.has(bucketStream(this.#subjects.leaseBucket()));
        if (isDescribed(known)) {
            const { leases } = parseSettings(known);
            this.#checkEtcd(leases);
            await this.#checkNoHosts(leases, names);
            return;
        }
        // Where nothing says where the leases are, they are looked for wherever they may be.
        if (hasLeaseBucket)
            await this.#checkNoHosts(LEASES_IN_KV, names);
        await this.#checkNoHosts(leasesIn(this.#options.etcd), names);
    }
    #checkEtcd(leases) {
        const { etcd, job } = this.#options;
        const received = leasesIn(etcd);
        if (received === leases)
            return;
        const message = leases === LEASES_IN_KV
            ? `job ${job} keeps its leases in the broker: expected no --etcd`
            : `job ${job} keeps its leases in ${leases}: expected --etcd and --etcd-prefix as its hosts have them`;
        throw new PserverError("BAD_VALUE", message, { job, expected: leases, received });
    }
    async #checkNoHosts(leases, streams) {
        const { connection, job, etcd } = this.#options;
        const hosts = etcd === undefined
            ? ((await aliveHosts(connection, this.#subjects, leases, streams)) ?? [])
            : (await etcd.client.keys(`${etcd.keys.leases}${HOST_LEASES}`)).map((key) => hostOfKey(key.slice(etcd.keys.leases.length)));
        if (hosts.length === 0)
            return;
        throw new PserverError("JOB_EXISTS", `hosts of job ${job} are alive: ${hosts.join(", ")}. Stop them first; the lease of one that ` +
            "crashed ends within seconds.", { job, hosts });
    }
    /** Removes the keys of the job that do not expire with a lease, as far as they are the listed ones. */
    async #removeEtcdKeys(listed, onRemoved) {
        for (const { key, revision } of listed) {
            const removed = await this.#options.etcd?.client.swap([{ key, revision }], [{ kind: "remove", key }]);
            if (removed === true)
                onRemoved(`etcd ${key}`);
        }
    }
    /** Returns the streams by name, that of the bucket of settings last. */
    #sorted(infos) {
        const streams = infos.map(({ config: { name }, created }) => ({ name, created }));
        const last = this.#bucketStream(streams);
        const others = streams.filter((stream) => stream !== last);
        others.sort((a, b) => (a.name < b.name ? -1 : 1));
        return last === undefined ? others : [...others, last];
    }
    /** Returns the stream of the bucket of settings, if it is among these. */
    #bucketStream(streams) {
        const name = bucketStream(this.#subjects.bucket());
        return streams.find((stream) => stream.name === name);
    }
    async #manager() {
        const { connection, timeoutMs } = this.#options;
        return await openJetStream(connection, timeoutMs).jetstreamManager(false);
    }
}
//# sourceMappingURL=remove-job.js.map