import { ensureError, PserverError, } from "../../protocol/index.js";
import { bucketStream } from "../../protocol/subjects.js";
import { openBucket } from "../journal/kv-bucket.js";
import { brokerCall, probeStorage } from "../journal/streams.js";
// How a job divides the space of its broker. nats-server refuses every message, those of leases too, once all streams
// together hold more than its limit. It also adds up the limits of all streams, and makes none with which they would
// be above that. So every stream of a job has a limit: then journals, tape and snapshots cannot take the space of
// leases and watermarks.
const MIB = 1024 ** 2;
/** The journal limit of a shard where the broker has space for it, and the lowest with which a job is made. */
const JOURNAL_BYTES_MAX = { file: 2 * 1024 ** 3, memory: 256 * MIB };
const JOURNAL_BYTES_MIN = 16 * MIB;
/** The share of the broker's space that journals may take; tape, snapshots and entries need the rest. */
const JOURNAL_SHARE = 0.6;
/** Bytes that the tape, and the snapshots of a job without parameters, may have for each byte of the journals. */
const SHARE_BESIDE = 1 / 4;
/**
 * Bytes of snapshots for each byte of declared state: the newest two snapshots are always kept while the next one is
 * written.
 */
const SNAPSHOT_FACTOR = 3;
/** The part of the snapshots' space beside {@link SNAPSHOT_FACTOR} that older ones may take; manifests need the rest. */
const OLDER_SHARE = 3 / 4;
/** The limit of the job's bucket without parameters: for the entries of all trainers, archivers and shards. */
export const ENTRIES_BYTES = 8 * MIB;
/** The largest entry of a parameter of one block without its configuration, with what the broker adds. */
const PARAMETER_ENTRY_BYTES = 2048;
/** Bytes of an entry for each byte of the parameter: it names the journal ends of the shards that hold its blocks. */
const ENTRY_SHARE = 1 / 2048;
/** The limit of the bucket of leases: those of all trainers, hosts and shards. */
export const LEASES_BYTES = 8 * MIB;
/** Returns the limit of a tape beside journals of such limits. */
export function tapeBytesBeside({ journalBytesMax, shards }) {
    return Math.ceil(journalBytesMax * shards * SHARE_BESIDE);
}
/** Returns the limit that the stream of snapshots needs, beside journals of such limits, for declared state. */
export function snapshotBytesFor({ journalBytesMax, shards }, heldBytes) {
    return Math.ceil(journalBytesMax * shards * SHARE_BESIDE) + SNAPSHOT_FACTOR * heldBytes;
}
/** Returns the bytes of snapshots that a shard may keep in addition to twice its values and slots. */
export function olderSnapshotBytes(journalBytesMax) {
    return Math.floor(journalBytesMax * SHARE_BESIDE * OLDER_SHARE);
}
/** Returns the limit that the job's bucket needs for what is declared. */
export function entriesBytesFor({ parameters, heldBytes, configBytes }) {
    const ends = Math.ceil(heldBytes * ENTRY_SHARE);
    return ENTRIES_BYTES + parameters * PARAMETER_ENTRY_BYTES + configBytes + ends;
}
/** Returns the bytes of a parameter's configuration, as its entry holds it. */
export function configBytesOf(config) {
    return Buffer.byteLength(JSON.stringify(config));
}
/**
 * Opens the bucket of a job's entries; makes it, with its space reserved, if it does not exist.
 * @throws JOB_EXISTS if it is kept in another way, NO_SPACE.
 */
export async function openEntries(connection, subjects, replicas) {
    return await openBucket({
        ...{ connection, bucket: subjects.bucket(), storage: "file", bytesMax: ENTRIES_BYTES },
        ...(replicas === undefined ? {} : { replicas }),
    });
}
/**
 * Returns the largest limit of one journal, halving from the default, for which the broker has space on every shard,
 * and beside them for tape, snapshots and leases.
 * @throws NO_SPACE if it has none for the lowest.
 */
export async function findJournalBytes(manager, subjects, storage, shards) {
    const fits = async (kind, bytes) => await probeStorage(manager, subjects, kind, Math.ceil(bytes));
    for (let bytes = JOURNAL_BYTES_MAX[storage]; bytes >= JOURNAL_BYTES_MIN; bytes /= 2) {
        const all = (bytes * shards) / JOURNAL_SHARE;
        const beside = 2 * SHARE_BESIDE * bytes * shards + LEASES_BYTES;
        const isThere = storage === "file"
            ? await fits("file", all + LEASES_BYTES)
            : (await fits("memory", all)) && (await fits("file", beside));
        if (isThere)
            return bytes;
    }
    throw new PserverError("NO_SPACE", `the broker has no space for ${shards} journals of ${JOURNAL_BYTES_MIN} bytes`, { expected: shards * JOURNAL_BYTES_MIN });
}
/**
 * Reserves space of the broker for what is declared in a job: raises the limits of its bucket and of its snapshots,
 * and never lowers them. One request is under way at a time, because the broker takes the limit that came last.
 */
export class JobSpace {
    #deps;
    #last = Promise.resolve();
    constructor(deps) {
        this.#deps = deps;
    }
    /**
     * Has the broker reserve what the entries and snapshots of all that is declared take.
     * @throws NO_SPACE if it has promised the space to other streams; TIMEOUT, JETSTREAM_UNAVAILABLE, ….
     */
    async reserve(declared) {
        const reserved = this.#last.then(() => this.#reserve(declared));
        // The error is for whoever has asked.
        this.#last = reserved.catch(() => undefined);
        await reserved;
    }
    async #reserve(declared) {
        const { subjects, limits } = this.#deps;
        await this.#raise(bucketStream(subjects.bucket()), entriesBytesFor(declared), declared);
        await this.#raise(subjects.snapshotStream(), snapshotBytesFor(limits, declared.heldBytes), declared);
    }
    async #raise(stream, bytes, declared) {
        const { streams } = this.#deps.manager;
        try {
            await brokerCall(`reserving ${bytes} bytes for the stream ${stream}`, { stream }, async () => {
                const { config } = await streams.info(stream);
                if (config.max_bytes < bytes)
                    await streams.update(stream, { max_bytes: bytes });
            });
        }
        catch (thrown) {
            const error = ensureError(thrown);
            if (error.code !== "NO_SPACE")
                throw error;
            const { parameters, heldBytes } = declared;
            throw new PserverError("NO_SPACE", `the broker cannot reserve ${bytes} bytes in the stream ${stream}, which ${parameters} parameters with ` +
                `${heldBytes} bytes of values and optimizer state need: raise max_file, or remove a job`, { stream, expected: bytes }, { cause: error });
        }
    }
}
//# sourceMappingURL=storage-plan.js.map