/** Every bound of the protocol, with its reason. Clients and hosts share them. */

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

/** Room kept in a message for everything but the tensor bytes. */
export const HEADER_BYTES_MAX = 64 * 1024;

/** The smallest `max_payload` a broker may have. */
export const PAYLOAD_BYTES_MIN = 256 * 1024;

/** Dimensions of a tensor; numpy's limit. */
export const RANK_MAX = 32;

/** Records of one session a shard remembers beyond `done`. */
export const WINDOW_RECORDS = 1024;

/** Trainers a shard remembers. */
export const TRAINERS_MAX = 4096;

/** Parameters a shard knows of by declaration. */
export const DECLARED_MAX = 65_536;

/** Sessions that a host's record can name as live. */
export const LIVE_SESSIONS_MAX = 16_384;

/** Trainers that one `forget` record, or one reply to `trainers`, can name. */
export const TRAINERS_PER_MESSAGE_MAX = 1024;

/**
 * Steps a clock may be ahead of the last closed one and of its member's clock before: no more than a
 * session can have under way, each clock being a record of the window.
 */
export const CLOCK_LEAD_STEPS = WINDOW_RECORDS;

/** Refused records of a session, beyond those applied, after which the shard takes no more of it. */
export const REFUSED_RECORDS_MAX = 65_536;

/** Members of a job that is synchronized by steps. */
export const MEMBERS_MAX = 4096;

/** Bytes of values and slots a shard may hold: its WebAssembly memory ends at 4 GiB. */
export const SHARD_BYTES_MAX = 3.5 * 1024 ** 3;

/** Shards of a new job. */
export const SHARDS_DEFAULT = 16;

/** The most shards a job may have. */
export const SHARDS_MAX = 256;

/** Parameters named in one `declare` or `status` request. */
export const PARAMETERS_PER_REQUEST_MAX = 256;

/** Bytes a client keeps in flight before their PubAck. */
export const IN_FLIGHT_BYTES_MAX = 16 * 1024 * 1024;

/** How long a trainer's or host's lease lasts without being renewed. */
export const LEASE_MS = 5_000;
