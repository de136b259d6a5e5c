/** Limits of the protocol, shared by clients and hosts, with their reasons. */

/** Version of the messages; a receiver refuses any other with `BAD_VERSION`. */
export const PROTOCOL_VERSION = 1;

/** Bytes of an escaped name: NATS subjects should stay under 256 characters, and ours have six tokens. */
export const NAME_BYTES_MAX = 200;

/** Bytes of an escaped trainer or host id. */
export const ID_BYTES_MAX = 64;

/** A parameter up to this size is one block, so its updates are transactions of the parameter. */
export const SINGLE_BLOCK_BYTES_MAX = 4 * 1024 * 1024;

/** Size of the blocks that a larger parameter is cut into. */
export const CUT_BLOCK_BYTES = 1024 * 1024;

/** Bytes of a message reserved for everything but the tensor bytes. */
export const HEADER_BYTES_MAX = 64 * 1024;

/** The smallest `max_payload` a broker may have. */
export const PAYLOAD_BYTES_MIN = 256 * 1024;

/** Dimensions of a tensor; numpy's limit. */
export const RANK_MAX = 32;

/** Records of one session that a shard remembers beyond `done`. */
export const WINDOW_RECORDS = 1024;

/** Trainers a shard remembers. */
export const TRAINERS_MAX = 4096;

/** Declared parameters that a shard remembers. */
export const DECLARED_MAX = 65_536;

/** Sessions that a host's record can name as live. */
export const LIVE_SESSIONS_MAX = 16_384;

/** Trainers that one `forget` record, or one reply to `trainers`, can name. */
export const TRAINERS_PER_MESSAGE_MAX = 1024;

/**
 * Steps that a clock may be ahead of the last closed step and of its member's previous clock. Each clock
 * is a record of the session's window, so a session cannot have more under way.
 */
export const CLOCK_LEAD_STEPS = WINDOW_RECORDS;

/** Excess of the work on a session's rejected records over that on its applied ones at which the shard rejects all others. */
export const REJECTED_WORK_MAX = 16_384;

/** Bytes of a record before its tensor bytes that count as much work as a record itself. */
export const WORK_HEADER_BYTES = 1024;

/** Entries of a batch that count as much work as a record. */
export const WORK_ENTRIES = 256;

/** Bytes of a record's tensor that count as much work as a record itself. */
export const WORK_DATA_BYTES = 128 * 1024;

/** Characters of a fragment's name. */
export const FRAGMENT_NAME_LENGTH_MAX = 100;

/** Records that one contribution to a fragment can have. */
export const CONTRIBUTION_PARTS_MAX = WINDOW_RECORDS;

/**
 * Bytes of contributions that a shard keeps as they came: those that are not complete yet, and those that a robust merge
 * needs until their round closes. Each snapshot holds them, and no trainer may have more than are left for others.
 */
export const KEPT_CONTRIBUTION_BYTES_MAX: number = 128 * 1024 * 1024;

/** The highest count of steps or tokens in one contribution, far below where counting becomes inexact. */
export const CONTRIBUTION_COUNT_MAX: number = 2 ** 40;

/** Norms for which the histories of a shard's guards have room: with the usual 32 of each, 32,768 histories. */
export const GUARD_NORMS_MAX: number = 2 ** 20;

/** Members of a job that is synchronized by steps. */
export const MEMBERS_MAX = 4096;

/** Bytes of values and optimizer slots that a shard may hold: WebAssembly memory ends at 4 GiB. */
export const SHARD_BYTES_MAX = 3.5 * 1024 ** 3;

/** Shards of a new job. */
export const SHARDS_DEFAULT = 16;

/** The most shards a job may have. */
export const SHARDS_MAX = 256;

/** Parameters named in one `declare` or `status` request. */
export const PARAMETERS_PER_REQUEST_MAX = 256;

/** Entries, each of one block, that a batch record or a batched read can have. */
export const BATCH_ENTRIES_MAX = 4096;

/** Runs of entries that a batch record can have. */
export const BATCH_RUNS_MAX = 64;

/** Bytes of a batch record before its tensor bytes; also the most that a host reads of a malformed record. */
export const BATCH_HEAD_BYTES_MAX = 16 * 1024;

/** The highest number of a block: numbers are uint32, and 0 is none. */
export const BLOCK_NUMBER_MAX: number = 2 ** 32 - 1;

/** Tensor bytes up to which a client fills a batch, and up to which a host fills a chunk of a reply. */
export const BATCH_BYTES = 1024 * 1024;

/** Tensor bytes from which on an entry is sent as a record of its own. */
export const BATCH_ENTRY_BYTES_MAX = 256 * 1024;

/** Bytes a client keeps in flight before their PubAck. */
export const IN_FLIGHT_BYTES_MAX = 16 * 1024 * 1024;

/**
 * Bytes of one shard's records that a client lets wait for their outcomes: as much as others then have to wait for.
 * A record counts its tensor bytes and UNSETTLED_BLOCK_BYTES for each of its blocks. A larger one waits alone.
 */
export const UNSETTLED_BYTES_MAX = 8 * 1024 * 1024;

/** Bytes that a shard folds in the time that a block takes besides its bytes. */
export const UNSETTLED_BLOCK_BYTES = 1024;

/** How long a trainer's or host's lease lasts without being renewed. */
export const LEASE_MS = 5_000;
