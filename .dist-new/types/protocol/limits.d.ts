/** Limits of the protocol, shared by clients and hosts, with their reasons. */
/** Version of the messages; a receiver refuses any other with `BAD_VERSION`. */
export declare const PROTOCOL_VERSION = 1;
/** Bytes of an escaped name: NATS subjects should stay under 256 characters, and ours have six tokens. */
export declare const NAME_BYTES_MAX = 200;
/** Bytes of an escaped trainer or host id. */
export declare const ID_BYTES_MAX = 64;
/** A parameter up to this size is one block, so its updates are transactions of the parameter. */
export declare const SINGLE_BLOCK_BYTES_MAX: number;
/** Size of the blocks that a larger parameter is cut into. */
export declare const CUT_BLOCK_BYTES: number;
/** Bytes of a message reserved for everything but the tensor bytes. */
export declare const HEADER_BYTES_MAX: number;
/** The smallest `max_payload` a broker may have. */
export declare const PAYLOAD_BYTES_MIN: number;
/** Dimensions of a tensor; numpy's limit. */
export declare const RANK_MAX = 32;
/** Records of one session that a shard remembers beyond `done`. */
export declare const WINDOW_RECORDS = 1024;
/** Trainers a shard remembers. */
export declare const TRAINERS_MAX = 4096;
/** Declared parameters that a shard remembers. */
export declare const DECLARED_MAX = 65536;
/** Sessions that a host's record can name as live. */
export declare const LIVE_SESSIONS_MAX = 16384;
/** Trainers that one `forget` record, or one reply to `trainers`, can name. */
export declare const TRAINERS_PER_MESSAGE_MAX = 1024;
/**
 * Steps that a clock may be ahead of the last closed step and of its member's previous clock. Each clock
 * is a record of the session's window, so a session cannot have more under way.
 */
export declare const CLOCK_LEAD_STEPS = 1024;
/** Excess of a session's rejected records over its applied ones at which the shard rejects all others. */
export declare const REFUSED_RECORDS_MAX = 65536;
/** Members of a job that is synchronized by steps. */
export declare const MEMBERS_MAX = 4096;
/** Bytes of values and optimizer slots that a shard may hold: WebAssembly memory ends at 4 GiB. */
export declare const SHARD_BYTES_MAX: number;
/** Shards of a new job. */
export declare const SHARDS_DEFAULT = 16;
/** The most shards a job may have. */
export declare const SHARDS_MAX = 256;
/** Parameters named in one `declare` or `status` request. */
export declare const PARAMETERS_PER_REQUEST_MAX = 256;
/** Entries, each of one block, that a batch record or a batched read can have. */
export declare const BATCH_ENTRIES_MAX = 4096;
/** Bytes of a batch record before its tensor bytes; also the most that a host reads of a malformed record. */
export declare const BATCH_HEAD_BYTES_MAX: number;
/** Tensor bytes up to which a client fills a batch, and up to which a host fills a chunk of a reply. */
export declare const BATCH_BYTES: number;
/** Tensor bytes from which on an entry is sent as a record of its own. */
export declare const BATCH_ENTRY_BYTES_MAX: number;
/** Bytes a client keeps in flight before their PubAck. */
export declare const IN_FLIGHT_BYTES_MAX: number;
/** How long a trainer's or host's lease lasts without being renewed. */
export declare const LEASE_MS = 5000;
//# sourceMappingURL=limits.d.ts.map