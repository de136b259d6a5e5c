import { DiscardPolicy, } from "@nats-io/jetstream";
import { JETSTREAM_ERRORS } from "../../../protocol/index.js";
import { fromStoreError, isWrongSequence, jetStreamErrorCode, } from "../../../transport/broker-error.js";
import { readable } from "../../fold/journal-record.js";
import { brokerCall, ensureFileStream } from "../streams.js";
import { tapeSpan } from "./tape-decoder.js";
/** Time limit for storing one message. */
const STORE_TIMEOUT_MS = 10_000;
/** One shard's part of the tape of a job, for its owner. */
export class TapeStore {
    #deps;
    constructor(deps) {
        this.#deps = deps;
    }
    /**
     * Reads the last message; undefined if there is none. A message that cannot be read covers nothing: its lines are
     * written again.
     * @throws TIMEOUT, ….
     */
    async last() {
        const { manager, subjects, shard } = this.#deps;
        const stream = subjects.tapeStream();
        return await brokerCall(`reading the tape of shard ${shard}`, { shard }, async () => {
            try {
                const last = await manager.streams.getMessage(stream, {
                    last_by_subj: subjects.tape(shard),
                });
                if (last === null)
                    return undefined;
                const span = readable(() => tapeSpan(last.data)) ?? { generation: 0, from: 0, to: 0 };
                return { streamSeq: last.seq, ...span };
            }
            catch (error) {
                if (jetStreamErrorCode(error) === JETSTREAM_ERRORS.MESSAGE_NOT_FOUND)
                    return undefined;
                throw error;
            }
        });
    }
    /**
     * Appends a message after the one with sequence `after` in the stream (0: the first of the shard).
     * @returns its sequence; undefined if the last message is another one.
     * @throws NO_SPACE, TIMEOUT, … if it was not stored, or nobody knows.
     */
    async append(bytes, after) {
        const { client, subjects, shard } = this.#deps;
        try {
            const ack = await client.publish(subjects.tape(shard), bytes, {
                timeout: STORE_TIMEOUT_MS,
                expect: { lastSubjectSequence: after },
            });
            return ack.seq;
        }
        catch (error) {
            if (isWrongSequence(error))
                return undefined;
            throw fromStoreError(error, `writing the tape of shard ${shard}`, { shard });
        }
    }
}
/**
 * Reads what the tape of a job takes in the broker.
 * @throws TIMEOUT, JETSTREAM_UNAVAILABLE and the like.
 */
export async function readTapeStorage(manager, subjects) {
    const stream = subjects.tapeStream();
    return await brokerCall(`looking at the tape of job ${subjects.job}`, { stream }, async () => {
        const { state, config } = await manager.streams.info(stream);
        return tapeStorage(state, config);
    });
}
/** Returns what a tape takes, by the state and the configuration of its stream. */
export function tapeStorage({ messages, bytes, first_seq: firstSeq, first_ts: firstTime }, { max_bytes: bytesMax }) {
    // Nobody may delete messages, so that only the limit can have removed the first one.
    return { messages, bytes, bytesMax, ...(firstSeq > 1 && { trimmedToMs: Date.parse(firstTime) }) };
}
/**
 * Creates the stream of a job's tape unless it exists. It reserves `bytesMax` bytes of the broker's space; beyond them
 * the broker drops the oldest messages, and nothing else is ever removed from it.
 */
export async function ensureTapeStream(manager, subjects, { replicas, bytesMax }) {
    const name = subjects.tapeStream();
    const config = { name, subjects: [subjects.allTapes()], num_replicas: replicas };
    const limit = { max_bytes: bytesMax, discard: DiscardPolicy.Old };
    await brokerCall(`creating the tape of job ${subjects.job}`, { bytesMax }, () => ensureFileStream(manager, { ...config, ...limit, deny_delete: true, deny_purge: true }));
}
//# sourceMappingURL=tape-store.js.map