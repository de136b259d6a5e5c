import { randomUUID } from "node:crypto";
import { setTimeout as delay } from "node:timers/promises";
import { asMap, ensureError, flagField, integerField, listField, PserverError, parsePosition, SHARDS_MAX, textField, } from "../../protocol/index.js";
import { mapConcurrently } from "../concurrent.js";
import { ENTRY_FORMAT, readEntry } from "../journal/kv-bucket.js";
import { SnapshotReader } from "../journal/snapshot-store.js";
import { BucketEntry } from "../lifecycle/lock.js";
const REWIND_KEY = "rewind";
/** The entry of the plan; there is none when a rewind is complete. */
const planEntry = new BucketEntry(REWIND_KEY, parsePlan, (plan) => ({ format: ENTRY_FORMAT, ...plan }));
/** Reads the plan from its entry. @throws BAD_VERSION for an entry of another format, INTERNAL for a damaged one. */
function parsePlan(stored) {
    if (stored === undefined)
        return undefined;
    return readEntry(stored.value, REWIND_KEY, (fields) => ({
        id: textField(fields, "id"),
        run: textField(fields, "run"),
        begunMs: integerField(fields, "begunMs"),
        at: listField(fields, "at", SHARDS_MAX).map((at) => parsePosition(asMap(at, "at"))),
        initialized: flagField(fields, "initialized"),
    }));
}
/** Reads the plan of a job; undefined if it has none. @throws the errors of {@link KvBucket} and of the entry. */
export async function readRewindPlan(deps) {
    return await planEntry.read(deps);
}
/**
 * Reads the plan of a job, and which shards have gone back; undefined if it has none. A shard whose newest manifest
 * cannot be read counts as one that has not.
 * @throws TIMEOUT, JETSTREAM_UNAVAILABLE and the like.
 */
export async function unfinishedRewind(manager, subjects, bucket) {
    const plan = await readRewindPlan({ bucket });
    if (plan === undefined)
        return undefined;
    const { id, begunMs, at } = plan;
    const passed = await mapConcurrently([...at.keys()], async (shard) => {
        try {
            const newest = await new SnapshotReader({ manager, subjects, shard }).lastManifest();
            return newest?.manifest.rewind?.id === id ? [shard] : [];
        }
        catch (error) {
            if (ensureError(error).code !== "SNAPSHOT_DAMAGED")
                throw error;
            return [];
        }
    });
    return { id, begunMs, at, goneBack: passed.flat() };
}
/** How often the removal of the plan's entry is tried while its answer is lost. */
const TRIES_MAX = 3;
/** The execution of a plan by one run, until another one takes the plan over. */
export class RewindRun {
    plan;
    #bucket;
    #job;
    constructor(bucket, job, plan) {
        this.#bucket = bucket;
        this.#job = job;
        this.plan = plan;
    }
    /** Notes a new plan. @throws BUSY if the job has one by now. */
    static async begin(bucket, job, rewind) {
        const [id, run] = [randomUUID(), randomUUID()];
        const plan = { id, run, begunMs: Date.now(), ...rewind };
        const { result } = await planEntry.change({ bucket, pause: delay }, (other) => {
            if (other === undefined)
                return plan;
            if (other.run === run)
                return other;
            throw overtaken(job);
        });
        return new RewindRun(bucket, job, result);
    }
    /** Takes a plan over, from whatever run executes it. @throws BUSY if it is complete or dropped by now. */
    static async takeOver(bucket, job, { id }) {
        const run = randomUUID();
        const { result } = await planEntry.change({ bucket, pause: delay }, (plan) => {
            if (plan?.id !== id)
                throw overtaken(job);
            return plan.run === run ? plan : { ...plan, run };
        });
        return new RewindRun(bucket, job, result);
    }
    /**
     * Checks that this run still executes the plan. To be called after reading what is about to be replaced.
     * @throws BUSY if another run has taken the plan over, completed or dropped it.
     */
    async check() {
        const stored = await readRewindPlan({ bucket: this.#bucket });
        if (stored?.run !== this.plan.run)
            throw overtaken(this.#job);
    }
    /** Removes the plan: the rewind is complete, or dropped. @throws BUSY as {@link check} does. */
    async end() {
        for (let tries = 1;; tries++) {
            const stored = await this.#bucket.read(REWIND_KEY);
            // An earlier try whose answer was lost may have removed it.
            if (stored === undefined && tries > 1)
                return;
            if (stored === undefined || parsePlan(stored)?.run !== this.plan.run)
                throw overtaken(this.#job);
            try {
                if (await this.#bucket.remove(REWIND_KEY, stored.revision))
                    return;
            }
            catch (error) {
                if (ensureError(error).code !== "TIMEOUT" || tries === TRIES_MAX)
                    throw error;
            }
        }
    }
}
function overtaken(job) {
    return new PserverError("BUSY", `job ${job}: another rewind has begun, or has gone on with this one`, {
        job,
    });
}
//# sourceMappingURL=rewind-plan.js.map