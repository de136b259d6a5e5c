import { asMap, integerField, listField, SHARDS_MAX, textField, } from "../../protocol/index.js";
import { readable } from "../fold/journal-record.js";
import { ENTRY_FORMAT, readEntry } from "./kv-bucket.js";
/** Prefix of the keys of all archivers in the job's bucket. */
const ARCHIVER_KEYS = "archiver.";
/** The longest grace time that an archiver may ask for. */
const GRACE_MS_MAX = 86_400_000;
/** Returns the key of an archiver's entry. */
export function archiverKey(archiver) {
    return `${ARCHIVER_KEYS}${archiver}`;
}
/** Returns the entry as JSON. */
export function toArchiverJson(entry) {
    const shards = entry.shards.map(({ record: last, snapshot }) => [
        ...[last.generation, last.seq],
        ...[snapshot.generation, snapshot.seq],
    ]);
    return { format: ENTRY_FORMAT, ...entry, shards };
}
/** Parses an archiver's entry. @throws BAD_VERSION for an entry of another format, INTERNAL for a damaged one. */
export function parseArchiverEntry(value, key) {
    return readEntry(value, key, (fields) => ({
        archiver: textField(fields, "archiver"),
        machine: textField(fields, "machine"),
        pid: integerField(fields, "pid"),
        writtenMs: integerField(fields, "writtenMs"),
        graceMs: integerField(fields, "graceMs", 0, GRACE_MS_MAX),
        shards: listField(fields, "shards", SHARDS_MAX).map(parseShard),
    }));
}
/** Reads the entries of all registered archivers. @throws the errors of {@link KvBucket}. */
export async function readArchivers(bucket) {
    const archivers = [];
    for (const key of await bucket.keys(ARCHIVER_KEYS)) {
        const entry = await bucket.read(key);
        if (entry === undefined)
            continue;
        const { revision, value } = entry;
        archivers.push({ key, revision, entry: readable(() => parseArchiverEntry(value, key)) });
    }
    return archivers;
}
function parseShard(value) {
    const numbers = asMap({ ...listField({ value }, "value", 4) }, "shard");
    const position = (at) => ({
        generation: integerField(numbers, `${at}`),
        seq: integerField(numbers, `${at + 1}`),
    });
    return { record: position(0), snapshot: position(2) };
}
/**
 * Watches the archivers of a job. An archiver whose entry stays the same for longer than its grace time is taken to
 * be gone, and its entry is removed. Only this host's clock counts.
 */
export class ArchiverWatch {
    #deps;
    #sightings = new Map();
    constructor(deps) {
        this.#deps = deps;
    }
    /**
     * Returns what each archiver that is alive has copied of a shard.
     * @throws TIMEOUT, JETSTREAM_UNAVAILABLE and the like.
     */
    async copied(shard) {
        const { bucket, nowMs } = this.#deps;
        const sightings = new Map();
        const copied = [];
        for (const { key, revision, entry } of await readArchivers(bucket)) {
            const archived = entry?.shards[shard];
            if (entry === undefined || archived === undefined)
                continue;
            const before = this.#sightings.get(key);
            const sinceMs = before?.revision === revision ? before.sinceMs : nowMs();
            if (nowMs() - sinceMs > entry.graceMs) {
                await bucket.remove(key, revision);
                continue;
            }
            sightings.set(key, { revision, sinceMs });
            copied.push(archived);
        }
        this.#sightings = sightings;
        return copied;
    }
}
//# sourceMappingURL=archivers.js.map