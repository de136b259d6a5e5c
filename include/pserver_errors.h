/* Written by scripts/write-c-errors.mjs from src/protocol/errors.ts: edit that. */
#ifndef PSERVER_ERRORS_H
#define PSERVER_ERRORS_H

/* PaddlePaddle's shipped header had this as a macro, of the same value. */
#ifdef PSERVER_OK
#undef PSERVER_OK
#endif

/** What came of a call. The numbers are the protocol's; none is ever used for another meaning. */
typedef enum pserver_status {
  /** the call did what it says */
  PSERVER_OK = 0,
  /** the message is malformed or truncated */
  PSERVER_ERR_BAD_MESSAGE = 1,
  /** the checksum does not match the bytes */
  PSERVER_ERR_BAD_CHECKSUM = 2,
  /** the protocol version is not spoken here */
  PSERVER_ERR_BAD_VERSION = 3,
  /** a name is empty, too long or not valid */
  PSERVER_ERR_BAD_NAME = 4,
  /** the element type is wrong or unknown */
  PSERVER_ERR_BAD_DTYPE = 5,
  /** the shape is wrong or not valid */
  PSERVER_ERR_BAD_SHAPE = 6,
  /** the number of bytes is wrong */
  PSERVER_ERR_BAD_LENGTH = 7,
  /** an argument is out of its range */
  PSERVER_ERR_BAD_VALUE = 8,
  /** the parameter configuration is not valid */
  PSERVER_ERR_BAD_CONFIG = 9,
  /** the reply subject is not under the trainer's inbox */
  PSERVER_ERR_BAD_REPLY = 10,
  /** the update holds a NaN or an infinity and the parameter does not allow them */
  PSERVER_ERR_NON_FINITE = 11,
  /** neither the parameter nor the call gives a learning rate */
  PSERVER_ERR_NO_LEARNING_RATE = 12,
  /** the element type does not take this update */
  PSERVER_ERR_UNSUPPORTED = 13,
  /** the list is empty */
  PSERVER_ERR_EMPTY = 14,
  /** more than a stated limit allows */
  PSERVER_ERR_TOO_LARGE = 15,
  /** no parameter has this name */
  PSERVER_ERR_UNKNOWN_PARAMETER = 16,
  /** the parameter is static: it takes no update */
  PSERVER_ERR_STATIC = 17,
  /** an index is out of range or out of order */
  PSERVER_ERR_BAD_INDEX = 18,
  /** the norm is above the limit of the parameter's guard */
  PSERVER_ERR_GUARDED = 19,
  /** the job is not initialized yet */
  PSERVER_ERR_NOT_INITIALIZED = 20,
  /** it is initialized already */
  PSERVER_ERR_ALREADY_INITIALIZED = 21,
  /** this trainer is not the one selected to initialize */
  PSERVER_ERR_NOT_SELECTED = 22,
  /** the message belongs to an initialization that was replaced */
  PSERVER_ERR_STALE_EPOCH = 23,
  /** declared blocks have not been initialized */
  PSERVER_ERR_INCOMPLETE = 24,
  /** the broker cannot hold the journals and state */
  PSERVER_ERR_NO_SPACE = 25,
  /** a job of this name exists with other settings */
  PSERVER_ERR_JOB_EXISTS = 26,
  /** an earlier change of the job is to be completed or dropped first */
  PSERVER_ERR_UNFINISHED = 27,
  /** the job was made anew since this trainer joined: connect again */
  PSERVER_ERR_JOB_REPLACED = 28,
  /** others were drawn to contribute to the round */
  PSERVER_ERR_NOT_SAMPLED = 29,
  /** a newer session of this trainer has joined */
  PSERVER_ERR_SUPERSEDED = 30,
  /** the session has ended; join again */
  PSERVER_ERR_REJOIN = 31,
  /** the record was settled before and its outcome has been forgotten */
  PSERVER_ERR_SETTLED = 32,
  /** too many unsettled records of one trainer */
  PSERVER_ERR_WINDOW = 33,
  /** the shard or the job has as many trainers as it may */
  PSERVER_ERR_TOO_MANY_TRAINERS = 34,
  /** the step has closed, or already has this gradient */
  PSERVER_ERR_LATE = 35,
  /** the step before has not closed yet */
  PSERVER_ERR_EARLY = 36,
  /** the trainer is not a member of the job's steps */
  PSERVER_ERR_NOT_MEMBER = 37,
  /** the trainer or job exceeds what it may hold or waste */
  PSERVER_ERR_QUOTA = 38,
  /** entries of the job are damaged, or older than what was done under them */
  PSERVER_ERR_JOB_DAMAGED = 39,
  /** the journal has reached its limit */
  PSERVER_ERR_JOURNAL_FULL = 40,
  /** the journal lost or changed a record */
  PSERVER_ERR_JOURNAL_DAMAGED = 41,
  /** the journal lost its newest records */
  PSERVER_ERR_JOURNAL_LOST = 42,
  /** the position is of a journal that has been replaced */
  PSERVER_ERR_JOURNAL_REPLACED = 43,
  /** a piece of a snapshot is lost or changed */
  PSERVER_ERR_SNAPSHOT_DAMAGED = 44,
  /** this host does not have the rules the journal is written under */
  PSERVER_ERR_UNKNOWN_RULES = 45,
  /** the broker cannot write the journal, for a reason other than a full disk */
  PSERVER_ERR_JOURNAL_FAULT = 46,
  /** the kept history does not reach back to the point */
  PSERVER_ERR_HISTORY_LOST = 47,
  /** a record cannot be folded, because of a defect of this program */
  PSERVER_ERR_FOLD_FAILED = 48,
  /** the tape lacks lines of records that are no longer kept */
  PSERVER_ERR_TAPE_DAMAGED = 49,
  /** no host serves the shard at the moment */
  PSERVER_ERR_NO_OWNER = 50,
  /** this host no longer owns the shard */
  PSERVER_ERR_NOT_OWNER = 51,
  /** the host has too much work queued */
  PSERVER_ERR_BUSY = 52,
  /** no host of the job answers */
  PSERVER_ERR_NO_HOST = 53,
  /** the host has less free memory than the shard needs */
  PSERVER_ERR_NO_MEMORY = 54,
  /** the call did not finish in its time */
  PSERVER_ERR_TIMEOUT = 60,
  /** each block update was applied once or not at all; which is not known */
  PSERVER_ERR_OUTCOME_UNKNOWN = 61,
  /** the caller aborted the call */
  PSERVER_ERR_ABORTED = 62,
  /** the client or host is closed */
  PSERVER_ERR_CLOSED = 63,
  /** the broker cannot be reached */
  PSERVER_ERR_NO_BROKER = 70,
  /** the broker runs without JetStream */
  PSERVER_ERR_NO_JETSTREAM = 71,
  /** the broker's version is too old */
  PSERVER_ERR_BROKER_TOO_OLD = 72,
  /** the broker's max_payload is too small */
  PSERVER_ERR_PAYLOAD_TOO_SMALL = 73,
  /** the broker refused the credentials or a subject */
  PSERVER_ERR_DENIED = 74,
  /** etcd cannot be reached or does not answer */
  PSERVER_ERR_NO_ETCD = 75,
  /** the broker's JetStream does not answer at the moment */
  PSERVER_ERR_JETSTREAM_UNAVAILABLE = 76,
  /** the broker offers no TLS, which was asked for, or has no trusted certificate */
  PSERVER_ERR_NO_TLS = 77,
  /** another process listens on the address */
  PSERVER_ERR_ADDRESS_IN_USE = 78,
  /** the path leaves the model directory or is not valid */
  PSERVER_ERR_BAD_PATH = 80,
  /** the file is not a valid model file */
  PSERVER_ERR_BAD_FILE = 81,
  /** a sparse parameter lacks one of its shards */
  PSERVER_ERR_MISSING_SHARD = 82,
  /** the operating system refused a file operation */
  PSERVER_ERR_IO = 83,
  /** no space is left on the device */
  PSERVER_ERR_DISK_FULL = 84,
  /** another process uses the directory */
  PSERVER_ERR_STORE_IN_USE = 85,
  /** an archive or a recorded file is damaged, incomplete or of another job */
  PSERVER_ERR_BAD_ARCHIVE = 86,
  /** a defect of this program */
  PSERVER_ERR_INTERNAL = 99,
} pserver_status;

/** Every code: its constant, its name in messages, and whether the same call can succeed later. */
#define PSERVER_ERROR_TABLE(X) \
  X(PSERVER_ERR_BAD_MESSAGE, "BAD_MESSAGE", 0) \
  X(PSERVER_ERR_BAD_CHECKSUM, "BAD_CHECKSUM", 0) \
  X(PSERVER_ERR_BAD_VERSION, "BAD_VERSION", 0) \
  X(PSERVER_ERR_BAD_NAME, "BAD_NAME", 0) \
  X(PSERVER_ERR_BAD_DTYPE, "BAD_DTYPE", 0) \
  X(PSERVER_ERR_BAD_SHAPE, "BAD_SHAPE", 0) \
  X(PSERVER_ERR_BAD_LENGTH, "BAD_LENGTH", 0) \
  X(PSERVER_ERR_BAD_VALUE, "BAD_VALUE", 0) \
  X(PSERVER_ERR_BAD_CONFIG, "BAD_CONFIG", 0) \
  X(PSERVER_ERR_BAD_REPLY, "BAD_REPLY", 0) \
  X(PSERVER_ERR_NON_FINITE, "NON_FINITE", 0) \
  X(PSERVER_ERR_NO_LEARNING_RATE, "NO_LEARNING_RATE", 0) \
  X(PSERVER_ERR_UNSUPPORTED, "UNSUPPORTED", 0) \
  X(PSERVER_ERR_EMPTY, "EMPTY", 0) \
  X(PSERVER_ERR_TOO_LARGE, "TOO_LARGE", 0) \
  X(PSERVER_ERR_UNKNOWN_PARAMETER, "UNKNOWN_PARAMETER", 0) \
  X(PSERVER_ERR_STATIC, "STATIC", 0) \
  X(PSERVER_ERR_BAD_INDEX, "BAD_INDEX", 0) \
  X(PSERVER_ERR_GUARDED, "GUARDED", 0) \
  X(PSERVER_ERR_NOT_INITIALIZED, "NOT_INITIALIZED", 1) \
  X(PSERVER_ERR_ALREADY_INITIALIZED, "ALREADY_INITIALIZED", 0) \
  X(PSERVER_ERR_NOT_SELECTED, "NOT_SELECTED", 0) \
  X(PSERVER_ERR_STALE_EPOCH, "STALE_EPOCH", 0) \
  X(PSERVER_ERR_INCOMPLETE, "INCOMPLETE", 0) \
  X(PSERVER_ERR_NO_SPACE, "NO_SPACE", 0) \
  X(PSERVER_ERR_JOB_EXISTS, "JOB_EXISTS", 0) \
  X(PSERVER_ERR_UNFINISHED, "UNFINISHED", 0) \
  X(PSERVER_ERR_JOB_REPLACED, "JOB_REPLACED", 0) \
  X(PSERVER_ERR_NOT_SAMPLED, "NOT_SAMPLED", 0) \
  X(PSERVER_ERR_SUPERSEDED, "SUPERSEDED", 0) \
  X(PSERVER_ERR_REJOIN, "REJOIN", 0) \
  X(PSERVER_ERR_SETTLED, "SETTLED", 0) \
  X(PSERVER_ERR_WINDOW, "WINDOW", 1) \
  X(PSERVER_ERR_TOO_MANY_TRAINERS, "TOO_MANY_TRAINERS", 0) \
  X(PSERVER_ERR_LATE, "LATE", 0) \
  X(PSERVER_ERR_EARLY, "EARLY", 1) \
  X(PSERVER_ERR_NOT_MEMBER, "NOT_MEMBER", 0) \
  X(PSERVER_ERR_QUOTA, "QUOTA", 0) \
  X(PSERVER_ERR_JOB_DAMAGED, "JOB_DAMAGED", 0) \
  X(PSERVER_ERR_JOURNAL_FULL, "JOURNAL_FULL", 1) \
  X(PSERVER_ERR_JOURNAL_DAMAGED, "JOURNAL_DAMAGED", 0) \
  X(PSERVER_ERR_JOURNAL_LOST, "JOURNAL_LOST", 0) \
  X(PSERVER_ERR_JOURNAL_REPLACED, "JOURNAL_REPLACED", 0) \
  X(PSERVER_ERR_SNAPSHOT_DAMAGED, "SNAPSHOT_DAMAGED", 0) \
  X(PSERVER_ERR_UNKNOWN_RULES, "UNKNOWN_RULES", 0) \
  X(PSERVER_ERR_JOURNAL_FAULT, "JOURNAL_FAULT", 1) \
  X(PSERVER_ERR_HISTORY_LOST, "HISTORY_LOST", 0) \
  X(PSERVER_ERR_FOLD_FAILED, "FOLD_FAILED", 0) \
  X(PSERVER_ERR_TAPE_DAMAGED, "TAPE_DAMAGED", 0) \
  X(PSERVER_ERR_NO_OWNER, "NO_OWNER", 1) \
  X(PSERVER_ERR_NOT_OWNER, "NOT_OWNER", 1) \
  X(PSERVER_ERR_BUSY, "BUSY", 1) \
  X(PSERVER_ERR_NO_HOST, "NO_HOST", 1) \
  X(PSERVER_ERR_NO_MEMORY, "NO_MEMORY", 1) \
  X(PSERVER_ERR_TIMEOUT, "TIMEOUT", 1) \
  X(PSERVER_ERR_OUTCOME_UNKNOWN, "OUTCOME_UNKNOWN", 0) \
  X(PSERVER_ERR_ABORTED, "ABORTED", 0) \
  X(PSERVER_ERR_CLOSED, "CLOSED", 0) \
  X(PSERVER_ERR_NO_BROKER, "NO_BROKER", 1) \
  X(PSERVER_ERR_NO_JETSTREAM, "NO_JETSTREAM", 0) \
  X(PSERVER_ERR_BROKER_TOO_OLD, "BROKER_TOO_OLD", 0) \
  X(PSERVER_ERR_PAYLOAD_TOO_SMALL, "PAYLOAD_TOO_SMALL", 0) \
  X(PSERVER_ERR_DENIED, "DENIED", 0) \
  X(PSERVER_ERR_NO_ETCD, "NO_ETCD", 1) \
  X(PSERVER_ERR_JETSTREAM_UNAVAILABLE, "JETSTREAM_UNAVAILABLE", 1) \
  X(PSERVER_ERR_NO_TLS, "NO_TLS", 0) \
  X(PSERVER_ERR_ADDRESS_IN_USE, "ADDRESS_IN_USE", 0) \
  X(PSERVER_ERR_BAD_PATH, "BAD_PATH", 0) \
  X(PSERVER_ERR_BAD_FILE, "BAD_FILE", 0) \
  X(PSERVER_ERR_MISSING_SHARD, "MISSING_SHARD", 0) \
  X(PSERVER_ERR_IO, "IO", 0) \
  X(PSERVER_ERR_DISK_FULL, "DISK_FULL", 0) \
  X(PSERVER_ERR_STORE_IN_USE, "STORE_IN_USE", 0) \
  X(PSERVER_ERR_BAD_ARCHIVE, "BAD_ARCHIVE", 0) \
  X(PSERVER_ERR_INTERNAL, "INTERNAL", 0)

#endif
