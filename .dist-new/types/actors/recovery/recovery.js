import { randomUUID } from "node:crypto";
import { hostname } from "node:os";
import { setTimeout as delay } from "node:timers/promises";
import { asMap, ensureError, integerField, JobSubjects, PserverError, SHARDS_MAX, } from "../../protocol/index.js";
import { dataBytesMaxOf, payloadBytesMaxOf } from "../../transport/bulk-transport.js";
import { openConnection } from "../../transport/connection.js";
import { StreamPublisher } from "../../transport/jetstream.js";
import { settingsLost } from "../job/job-settings.js";
import { openAnyJob } from "../job/open-job.js";
import { OwnersClient } from "../job/owners-client.js";
import { openEntries } from "../job/storage-plan.js";
import { SnapshotStore } from "../journal/snapshot-store.js";
import { watermarkKey } from "../journal/watermark.js";
import { WatermarkKeeper } from "../journal/watermark-keeper.js";
import { readTakeOver, TakeOverWatch, takingOver } from "../owner/take-over.js";
import { acceptLoss } from "./accept-loss.js";
import { askKnown, inspectEntries } from "./inspect-entries.js";
import { inspectShard } from "./inspect-shard.js";
import { initializedBlocks } from "./inspect-snapshots.js";
import { discard, repairEntries, requireReadable } from "./repair-entries.js";
/** How long an owner may take to take its shard over again, besides two lease times. */
const GRACE_MS = 5_000;
/** Time limit for the reply of an owner. */
const OWNER_MS = 2_000;
/** Pause before an owner that does not serve the shard yet is asked again. */
const RETRY_MS = 100;
/** Returns how long running hosts may take to serve a shard again that goes on under a new generation. */
export function takeOverMs(leaseMs) {
    return 2 * leaseMs + GRACE_MS;
}
/**
 * Asks for the generation under which a shard is served.
 * @throws the error of its owner; NO_OWNER if none answers, or the shard is being taken over.
 */
async function servedGeneration(owners, shard) {
    const { fields } = await owners.ask(shard, "status", {}, OWNER_MS);
    const status = asMap(fields["status"], "status");
    const takeOver = readTakeOver(status);
    if (takeOver !== undefined)
        throw takingOver(takeOver);
    return integerField(status, "generation");
}
/**
 * Waits until a host serves a shard under a generation: hosts that run take it over again by themselves. Returns
 * undefined when one does, else why none does: NO_OWNER, soon, if no host answers for the shard at first and none did
 * before; the last error of its owner once no take-over has made progress for
 * {@link takeOverMs}.
 * @throws the reason of `signal`.
 */
export async function awaitOwner(owners, expected) {
    const { leaseMs, hadHost, signal } = expected;
    const watch = new TakeOverWatch();
    for (let hasHost = hadHost;;) {
        const problem = await problemOf(owners, expected);
        const takeOver = problem && readTakeOver(problem.details);
        if (takeOver !== undefined)
            watch.note([takeOver]);
        hasHost ||= problem?.code !== "NO_OWNER" || takeOver !== undefined;
        const isOver = watch.stalledMs >= takeOverMs(leaseMs);
        if (problem === undefined || !hasHost || isOver)
            return problem;
        await delay(RETRY_MS);
        signal.throwIfAborted();
    }
}
/** Returns why a shard is not served under its generation; undefined if it is. */
async function problemOf(owners, { shard, generation }) {
    try {
        const received = await servedGeneration(owners, shard);
        if (received >= generation)
            return undefined;
        const text = `shard ${shard}: expected generation ${generation} to be served; received ${received}`;
        return new PserverError("NOT_OWNER", text, { shard, expected: generation, received });
    }
    catch (error) {
        return ensureError(error);
    }
}
/** Findings for a shard that is served: its owner has answered, and the broker is not asked. */
const NOTHING_LOST = { manifestSeq: 0, snapshots: [], lastKnownSeq: 0, choices: [] };
/** Inspects the shards of a job and lets stopped ones go on without what is lost; see `pserver recover`. */
export class Recovery {
    settings;
    #deps;
    /** Shards for which a host has answered, if only with an error. */
    #hosted = new Set();
    constructor(deps) {
        this.settings = deps.settings;
        this.#deps = deps;
    }
    /**
     * Connects as a host does, without joining the job, which may have lost its settings.
     * @throws NO_BROKER, DENIED, NO_JETSTREAM, JETSTREAM_UNAVAILABLE, TIMEOUT; BAD_NAME if the broker holds no such
     * job; JOB_DAMAGED if its settings and their copy are lost, or if its bucket is lost and not to be made again.
     */
    static async open(reach, job, { archive, makesBucket } = {}) {
        const subjects = new JobSubjects(job);
        const host = `recover-${hostname().slice(0, 24)}-${process.pid}-${randomUUID().slice(0, 8)}`;
        const inboxPrefix = subjects.hostInbox(host);
        const connection = await openConnection(reach, {
            name: `pserver ${job} recover`,
            inboxPrefix,
        });
        try {
            const stored = await openAnyJob(connection, job);
            const { problem, lacksBucket, settings } = stored;
            if (lacksBucket && makesBucket !== true)
                throw problem ?? settingsLost(job);
            const { replicas } = settings;
            const bucket = lacksBucket
                ? await openEntries(connection, subjects, replicas)
                : stored.bucket;
            return new Recovery({
                ...{ ...stored, bucket },
                ...{ connection, host, archive },
                owners: new OwnersClient({ ...stored, connection, host }),
                publisher: StreamPublisher.open(connection, inboxPrefix),
            });
        }
        catch (error) {
            await connection.close();
            throw error;
        }
    }
    /** Inspects the entries of the job's bucket; changes nothing. @throws as `inspectEntries`. */
    async inspectEntries() {
        const { bucket, owners } = this.#deps;
        return await inspectEntries(bucket, allShards(this.settings), (shard) => askKnown(owners, shard));
    }
    /** Writes entries again that have problems, and returns their keys. @throws as `repairEntries`. */
    async repairEntries(findings) {
        return await repairEntries(this.#deps, findings);
    }
    /** Inspects a shard; changes nothing. */
    async inspect(shard) {
        try {
            const generation = await servedGeneration(this.#deps.owners, shard);
            return { shard, condition: "serving", generation, ...NOTHING_LOST };
        }
        catch (caught) {
            const error = ensureError(caught);
            if (error.code === "NO_OWNER")
                return await this.#inspectUnserved(shard, undefined);
            this.#hosted.add(shard);
            return await this.#inspectUnserved(shard, error);
        }
    }
    /** Continues a shard from a choice of the findings. @throws the errors of `acceptLoss`. */
    async recover(findings, choice, onStage) {
        const { connection, host, bucket, archive } = this.#deps;
        const { shard } = findings;
        // Nothing of a damaged mark can be used, and its next owner must not stop at it.
        const { damage } = await this.#mark(shard);
        if (damage !== undefined) {
            const key = watermarkKey(shard);
            requireReadable([{ key, problem: String(damage.details["problem"]) }]);
            await discard(bucket, key, await bucket.lastRevision());
        }
        const deps = {
            ...this.#tools(shard),
            ...{ archive, host },
            initialized: await initializedBlocks(bucket, shard),
            watermarks: new WatermarkKeeper(bucket, shard),
            partBytesMax: dataBytesMaxOf(connection),
            ...(onStage && { onStage }),
        };
        return await acceptLoss(deps, findings, choice);
    }
    /**
     * Waits until a host serves a shard that was recovered; returns why none does, or undefined. Hosts count as
     * running if one answered for the shard when it was inspected: while it takes the shard over, none does.
     * @throws the reason of `signal`.
     */
    async awaitOwner({ shard, generation }, signal) {
        const { leaseMs } = this.settings;
        const hadHost = this.#hosted.has(shard);
        return await awaitOwner(this.#deps.owners, { shard, generation, leaseMs, hadHost, signal });
    }
    /** Closes the connection. */
    async close() {
        await this.#deps.connection.close();
    }
    async #inspectUnserved(shard, ownerError) {
        const { bucket, client, archive } = this.#deps;
        const initialized = await initializedBlocks(bucket, shard);
        const { watermark, damage } = await this.#mark(shard);
        const found = { ownerError: ownerError ?? damage, initialized, watermark, archive };
        return await inspectShard({ ...this.#tools(shard), client, ...found });
    }
    /** Reads the mark of a shard's owners, or what is wrong with it. */
    async #mark(shard) {
        try {
            const watermark = await new WatermarkKeeper(this.#deps.bucket, shard).read();
            return watermark === undefined ? {} : { watermark };
        }
        catch (error) {
            const damage = ensureError(error);
            if (damage.code !== "JOB_DAMAGED")
                throw error;
            return { damage };
        }
    }
    #tools(shard) {
        const { manager, client, publisher, subjects, journalOf, connection, host } = this.#deps;
        return {
            ...{ shard, subjects, manager, connection },
            inboxPrefix: subjects.hostInbox(host),
            payloadBytesMax: payloadBytesMaxOf(connection),
            journal: journalOf(shard),
            storage: this.settings.journal,
            store: new SnapshotStore({ manager, client, publisher, subjects, shard }),
        };
    }
}
/** Returns the numbers of all shards of a job. */
export function allShards({ shards }) {
    return Array.from({ length: Math.min(shards, SHARDS_MAX) }, (_, shard) => shard);
}
//# sourceMappingURL=recovery.js.map