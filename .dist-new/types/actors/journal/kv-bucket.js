import { DeliverPolicy, StorageType, } from "@nats-io/jetstream";
import { Kvm } from "@nats-io/kv";
import { asMap, bucketStream, JETSTREAM_ERRORS, PserverError, } from "../../protocol/index.js";
import { fromStoreError, isWrongSequence, jetStreamErrorCode, } from "../../transport/broker-error.js";
import { openJetStream, StreamPublisher } from "../../transport/jetstream.js";
import { brokerCall, readStream } from "./streams.js";
/**
 * Replaces the entry of that revision, or writes the first entry if the revision is undefined. Returns the new
 * revision; undefined if somebody else has written since.
 */
export async function replaceEntry(bucket, key, value, revision) {
    return revision === undefined
        ? await bucket.create(key, value)
        : await bucket.update(key, value, revision);
}
const TIMEOUT_MS = 5_000;
/** Requests that fit into the lifetime of an entry: a lease must survive a lost request or two. */
const REQUESTS_PER_TTL = 5;
/**
 * Opens a JetStream KV bucket; makes it if it does not exist.
 * @throws JOB_EXISTS if the bucket is kept in another way than asked for.
 */
export async function openBucket(options) {
    const { connection, bucket, ttlMs } = options;
    const timeoutMs = ttlMs === undefined ? TIMEOUT_MS : Math.ceil(ttlMs / REQUESTS_PER_TTL);
    return await open(connection, bucket, options.timeoutMs ?? timeoutMs, async (kvm) => {
        const kv = await kvm.create(bucket, {
            history: 1,
            storage: options.storage === "file" ? StorageType.File : StorageType.Memory,
            replicas: options.replicas ?? 1,
            // Direct reads may be answered by a replica that lags: no lock can be built on them.
            allow_direct: false,
            ...(ttlMs === undefined ? {} : { ttl: ttlMs }),
        });
        // Opening an existing bucket does not compare its configuration.
        const status = await kv.status();
        checkBucket(options, status);
        return { kv, created: status.streamInfo.created };
    });
}
/**
 * Opens an existing bucket without asking the broker for it. If it does not exist, every method throws
 * JETSTREAM_UNAVAILABLE.
 */
export async function openExistingBucket(connection, bucket) {
    return await open(connection, bucket, TIMEOUT_MS, async (kvm) => ({
        kv: await kvm.open(bucket, { allow_direct: false }),
        created: undefined,
    }));
}
async function open(connection, bucket, timeoutMs, openKv) {
    return await brokerCall(`opening the bucket ${bucket}`, { bucket }, async () => {
        const client = openJetStream(connection, timeoutMs);
        const manager = await client.jetstreamManager();
        const opened = await openKv(new Kvm(client));
        return new JetStreamBucket({ connection, client, manager, ...opened, bucket, timeoutMs });
    });
}
function checkBucket(options, status) {
    const expected = {
        history: 1,
        storage: options.storage,
        replicas: options.replicas ?? status.replicas,
        ttlMs: options.ttlMs ?? 0,
    };
    const received = {
        history: status.history,
        storage: status.storage,
        replicas: status.replicas,
        ttlMs: status.ttl,
    };
    const [wanted, found] = [JSON.stringify(expected), JSON.stringify(received)];
    if (wanted === found)
        return;
    throw new PserverError("JOB_EXISTS", `bucket ${options.bucket} exists with other settings: expected ${wanted}; received ${found}`, { bucket: options.bucket, expected, received });
}
class JetStreamBucket {
    #deps;
    #bucket;
    #created;
    /** Opened by the first write, so that a reader subscribes to nothing. */
    #publisher;
    constructor(deps) {
        this.#deps = deps;
        this.#bucket = deps.bucket;
        this.#created = deps.created;
    }
    async created() {
        this.#created ??= await this.#attempt("looking at", "", async () => {
            const info = await this.#deps.manager.streams.info(bucketStream(this.#bucket));
            return info.created;
        });
        return this.#created;
    }
    async read(key) {
        return await this.#attempt("reading", key, async () => {
            const entry = await this.#deps.kv.get(key);
            if (entry === null || entry.operation !== "PUT")
                return undefined;
            return { value: parseValue(key, entry.string()), revision: entry.revision };
        });
    }
    async create(key, value) {
        return await this.#swap("creating", key, value, 0);
    }
    async update(key, value, revision) {
        return await this.#swap("updating", key, value, revision);
    }
    async remove(key, revision) {
        return await this.#attempt("removing", key, async () => {
            try {
                // Removes the message of one revision, not the key, so that a newer entry stays untouched.
                return await this.#deps.manager.streams.deleteMessage(bucketStream(this.#bucket), revision);
            }
            catch (error) {
                const isRefused = jetStreamErrorCode(error) === JETSTREAM_ERRORS.MESSAGE_NOT_REMOVED;
                if (isRefused && (await this.read(key))?.revision !== revision)
                    return false;
                throw error;
            }
        });
    }
    async keys(prefix) {
        return await this.#attempt("listing", prefix, async () => {
            const root = this.#subject("");
            // Asked of the stream, whose leader answers; a consumer may run on a replica that lags.
            const info = await this.#deps.manager.streams.info(bucketStream(this.#bucket), {
                subjects_filter: `${root}${prefix}>`,
            });
            return Object.keys(info.state.subjects ?? {}).map((subject) => subject.slice(root.length));
        });
    }
    async changes(prefix, afterRevision, onEntry) {
        const { client, manager, timeoutMs } = this.#deps;
        return await this.#attempt("following", prefix, async () => {
            const [stream, root] = [bucketStream(this.#bucket), this.#subject("")];
            const filter = `${root}${prefix}>`;
            // Asked of the stream, whose leader answers; a consumer may run on a replica that lags.
            const { state } = await manager.streams.info(stream);
            if (state.last_seq <= afterRevision)
                return afterRevision;
            // This searches all subjects, so it runs only if anything was stored at all.
            const last = await manager.streams.getMessage(stream, { last_by_subj: filter });
            if (last === null || last.seq <= afterRevision)
                return state.last_seq;
            let revision = state.last_seq;
            const changes = readStream({
                ...{ manager, client, stream, timeoutMs, toSeq: last.seq },
                select: {
                    filter_subject: filter,
                    deliver_policy: DeliverPolicy.StartSequence,
                    opt_start_seq: afterRevision + 1,
                },
                action: this.#describe("following", prefix),
                details: { bucket: this.#bucket },
            });
            for await (const batch of changes) {
                for (const message of batch) {
                    const key = message.subject.slice(root.length);
                    onEntry(key, { value: parseValue(key, message.string()), revision: message.seq });
                    revision = Math.max(revision, message.seq);
                }
            }
            return revision;
        });
    }
    /** Writes an entry if the last one under the key has this revision; revision 0 stands for no entry. */
    async #swap(action, key, value, revision) {
        const { connection, timeoutMs } = this.#deps;
        return await this.#attempt(action, key, async () => {
            try {
                this.#publisher ??= StreamPublisher.open(connection);
                const text = JSON.stringify(value);
                return await this.#publisher.swap(this.#subject(key), text, revision, timeoutMs);
            }
            catch (error) {
                if (isWrongSequence(error))
                    return undefined;
                throw fromStoreError(error, this.#describe(action, key), { bucket: this.#bucket, key });
            }
        });
    }
    async #attempt(action, key, run) {
        return await brokerCall(this.#describe(action, key), { bucket: this.#bucket, key }, run);
    }
    #subject(key) {
        return `$KV.${this.#bucket}.${key}`;
    }
    #describe(action, key) {
        return `${action} ${key} in the bucket ${this.#bucket}`;
    }
}
function parseValue(key, text) {
    try {
        return JSON.parse(text);
    }
    catch (cause) {
        throw new PserverError("INTERNAL", `record ${key}: expected JSON; received ${JSON.stringify(text.slice(0, 60))}`, { key }, { cause });
    }
}
/** Version of the entries that this program writes. */
export const ENTRY_FORMAT = 1;
/**
 * Reads an entry of this format with `parse`.
 * @throws BAD_VERSION for an entry of another format, INTERNAL if `parse` throws.
 */
export function readEntry(value, key, parse) {
    let format;
    try {
        const fields = asMap(value, "record");
        format = fields["format"];
        if (format === ENTRY_FORMAT)
            return parse(fields);
    }
    catch (cause) {
        const text = cause instanceof Error ? cause.message : String(cause);
        throw new PserverError("INTERNAL", `record ${key} is damaged: ${text}`, { key }, { cause });
    }
    throw new PserverError("BAD_VERSION", `record ${key}: expected format ${ENTRY_FORMAT}; received ${String(format)}`, { key, expected: ENTRY_FORMAT, received: format });
}
//# sourceMappingURL=kv-bucket.js.map