# Written by scripts/write-python-errors.mjs from src/protocol/errors.ts: edit that.
"""An exception for each code of the protocol, also of the built-in class that fits."""

from __future__ import annotations

from ._error import Error

__all__ = [
    "BadMessage",
    "BadChecksum",
    "BadVersion",
    "BadName",
    "BadDtype",
    "BadShape",
    "BadLength",
    "BadValue",
    "BadConfig",
    "BadReply",
    "NonFinite",
    "NoLearningRate",
    "Unsupported",
    "Empty",
    "TooLarge",
    "UnknownParameter",
    "Static",
    "BadIndex",
    "NotInitialized",
    "AlreadyInitialized",
    "NotSelected",
    "StaleEpoch",
    "Incomplete",
    "NoSpace",
    "JobExists",
    "Superseded",
    "Rejoin",
    "Settled",
    "Window",
    "TooManyTrainers",
    "Late",
    "Early",
    "NotMember",
    "Quota",
    "JobDamaged",
    "JournalFull",
    "JournalDamaged",
    "JournalLost",
    "JournalReplaced",
    "SnapshotDamaged",
    "UnknownRules",
    "JournalFault",
    "NoOwner",
    "NotOwner",
    "Busy",
    "NoHost",
    "NoMemory",
    "Timeout",
    "OutcomeUnknown",
    "Aborted",
    "Closed",
    "NoBroker",
    "NoJetstream",
    "BrokerTooOld",
    "PayloadTooSmall",
    "Denied",
    "NoEtcd",
    "JetstreamUnavailable",
    "NoTls",
    "AddressInUse",
    "BadPath",
    "BadFile",
    "MissingShard",
    "Io",
    "DiskFull",
    "StoreInUse",
    "Internal",
]


class BadMessage(Error):
    """BAD_MESSAGE: the message is malformed or truncated."""

    code = "BAD_MESSAGE"


class BadChecksum(Error):
    """BAD_CHECKSUM: the checksum does not match the bytes."""

    code = "BAD_CHECKSUM"


class BadVersion(Error):
    """BAD_VERSION: the protocol version is not spoken here."""

    code = "BAD_VERSION"


class BadName(Error, ValueError):
    """BAD_NAME: a name is empty, too long or not valid."""

    code = "BAD_NAME"


class BadDtype(Error, TypeError):
    """BAD_DTYPE: the element type is wrong or unknown."""

    code = "BAD_DTYPE"


class BadShape(Error, ValueError):
    """BAD_SHAPE: the shape is wrong or not valid."""

    code = "BAD_SHAPE"


class BadLength(Error, ValueError):
    """BAD_LENGTH: the number of bytes is wrong."""

    code = "BAD_LENGTH"


class BadValue(Error, ValueError):
    """BAD_VALUE: an argument is out of its range."""

    code = "BAD_VALUE"


class BadConfig(Error, ValueError):
    """BAD_CONFIG: the parameter configuration is not valid."""

    code = "BAD_CONFIG"


class BadReply(Error):
    """BAD_REPLY: the reply subject is not under the trainer's inbox."""

    code = "BAD_REPLY"


class NonFinite(Error, ValueError):
    """NON_FINITE: the update holds a NaN or an infinity and the parameter does not allow them."""

    code = "NON_FINITE"


class NoLearningRate(Error, ValueError):
    """NO_LEARNING_RATE: neither the parameter nor the call gives a learning rate."""

    code = "NO_LEARNING_RATE"


class Unsupported(Error, TypeError):
    """UNSUPPORTED: the element type does not take this update."""

    code = "UNSUPPORTED"


class Empty(Error, ValueError):
    """EMPTY: the list is empty."""

    code = "EMPTY"


class TooLarge(Error, ValueError):
    """TOO_LARGE: more than a stated limit allows."""

    code = "TOO_LARGE"


class UnknownParameter(Error, KeyError):
    """UNKNOWN_PARAMETER: no parameter has this name."""

    code = "UNKNOWN_PARAMETER"


class Static(Error):
    """STATIC: the parameter is static: it takes no update."""

    code = "STATIC"


class BadIndex(Error, IndexError):
    """BAD_INDEX: an index is out of range or out of order."""

    code = "BAD_INDEX"


class NotInitialized(Error):
    """NOT_INITIALIZED: the job is not initialized yet."""

    code = "NOT_INITIALIZED"
    retryable = True


class AlreadyInitialized(Error):
    """ALREADY_INITIALIZED: it is initialized already."""

    code = "ALREADY_INITIALIZED"


class NotSelected(Error):
    """NOT_SELECTED: this trainer is not the one selected to initialize."""

    code = "NOT_SELECTED"


class StaleEpoch(Error):
    """STALE_EPOCH: the message belongs to an initialization that was replaced."""

    code = "STALE_EPOCH"


class Incomplete(Error):
    """INCOMPLETE: declared blocks have not been initialized."""

    code = "INCOMPLETE"


class NoSpace(Error):
    """NO_SPACE: the broker cannot hold the journals and state."""

    code = "NO_SPACE"


class JobExists(Error):
    """JOB_EXISTS: a job of this name exists with other settings."""

    code = "JOB_EXISTS"


class Superseded(Error):
    """SUPERSEDED: a newer session of this trainer has joined."""

    code = "SUPERSEDED"


class Rejoin(Error):
    """REJOIN: the session has ended; join again."""

    code = "REJOIN"


class Settled(Error):
    """SETTLED: the record was settled before and its outcome has been forgotten."""

    code = "SETTLED"


class Window(Error):
    """WINDOW: too many unsettled records of one trainer."""

    code = "WINDOW"
    retryable = True


class TooManyTrainers(Error):
    """TOO_MANY_TRAINERS: the shard's trainer table is full."""

    code = "TOO_MANY_TRAINERS"


class Late(Error):
    """LATE: the step has closed, or already has this gradient."""

    code = "LATE"


class Early(Error):
    """EARLY: the step before has not closed yet."""

    code = "EARLY"
    retryable = True


class NotMember(Error):
    """NOT_MEMBER: the trainer is not a member of the job's steps."""

    code = "NOT_MEMBER"


class Quota(Error):
    """QUOTA: the trainer or job exceeds what it may hold or waste."""

    code = "QUOTA"


class JobDamaged(Error):
    """JOB_DAMAGED: the job's records are older than what was already done under them."""

    code = "JOB_DAMAGED"


class JournalFull(Error):
    """JOURNAL_FULL: the journal has reached its limit."""

    code = "JOURNAL_FULL"
    retryable = True


class JournalDamaged(Error):
    """JOURNAL_DAMAGED: the journal lost or changed a record."""

    code = "JOURNAL_DAMAGED"


class JournalLost(Error):
    """JOURNAL_LOST: the journal lost its newest records."""

    code = "JOURNAL_LOST"


class JournalReplaced(Error):
    """JOURNAL_REPLACED: the position is of a journal that has been replaced."""

    code = "JOURNAL_REPLACED"


class SnapshotDamaged(Error):
    """SNAPSHOT_DAMAGED: a piece of a snapshot is lost or changed."""

    code = "SNAPSHOT_DAMAGED"


class UnknownRules(Error):
    """UNKNOWN_RULES: this host does not have the rules the journal is written under."""

    code = "UNKNOWN_RULES"


class JournalFault(Error):
    """JOURNAL_FAULT: the broker cannot write the journal, for a reason other than a full disk."""

    code = "JOURNAL_FAULT"
    retryable = True


class NoOwner(Error, ConnectionError):
    """NO_OWNER: no host serves the shard at the moment."""

    code = "NO_OWNER"
    retryable = True


class NotOwner(Error):
    """NOT_OWNER: this host no longer owns the shard."""

    code = "NOT_OWNER"
    retryable = True


class Busy(Error):
    """BUSY: the host has too much work queued."""

    code = "BUSY"
    retryable = True


class NoHost(Error, ConnectionError):
    """NO_HOST: no host of the job answers."""

    code = "NO_HOST"
    retryable = True


class NoMemory(Error):
    """NO_MEMORY: the host has less free memory than the shard needs."""

    code = "NO_MEMORY"
    retryable = True


class Timeout(Error, TimeoutError):
    """TIMEOUT: the call did not finish in its time."""

    code = "TIMEOUT"
    retryable = True


class OutcomeUnknown(Error):
    """OUTCOME_UNKNOWN: each block update was applied once or not at all; which is not known."""

    code = "OUTCOME_UNKNOWN"


class Aborted(Error):
    """ABORTED: the caller aborted the call."""

    code = "ABORTED"


class Closed(Error):
    """CLOSED: the client or host is closed."""

    code = "CLOSED"


class NoBroker(Error, ConnectionError):
    """NO_BROKER: the broker cannot be reached."""

    code = "NO_BROKER"
    retryable = True


class NoJetstream(Error):
    """NO_JETSTREAM: the broker runs without JetStream."""

    code = "NO_JETSTREAM"


class BrokerTooOld(Error):
    """BROKER_TOO_OLD: the broker's version is too old."""

    code = "BROKER_TOO_OLD"


class PayloadTooSmall(Error):
    """PAYLOAD_TOO_SMALL: the broker's max_payload is too small."""

    code = "PAYLOAD_TOO_SMALL"


class Denied(Error, PermissionError):
    """DENIED: the broker refused the credentials or a subject."""

    code = "DENIED"


class NoEtcd(Error, ConnectionError):
    """NO_ETCD: etcd cannot be reached or does not answer."""

    code = "NO_ETCD"
    retryable = True


class JetstreamUnavailable(Error, ConnectionError):
    """JETSTREAM_UNAVAILABLE: the broker's JetStream does not answer at the moment."""

    code = "JETSTREAM_UNAVAILABLE"
    retryable = True


class NoTls(Error, ConnectionError):
    """NO_TLS: the broker offers no TLS, which was asked for, or has no trusted certificate."""

    code = "NO_TLS"


class AddressInUse(Error):
    """ADDRESS_IN_USE: another process listens on the address."""

    code = "ADDRESS_IN_USE"


class BadPath(Error, ValueError):
    """BAD_PATH: the path leaves the model directory or is not valid."""

    code = "BAD_PATH"


class BadFile(Error):
    """BAD_FILE: the file is not a valid model file."""

    code = "BAD_FILE"


class MissingShard(Error):
    """MISSING_SHARD: a sparse parameter lacks one of its shards."""

    code = "MISSING_SHARD"


class Io(Error, OSError):
    """IO: the operating system refused a file operation."""

    code = "IO"


class DiskFull(Error, OSError):
    """DISK_FULL: no space is left on the device."""

    code = "DISK_FULL"


class StoreInUse(Error):
    """STORE_IN_USE: another process uses the store directory."""

    code = "STORE_IN_USE"


class Internal(Error):
    """INTERNAL: a defect of this program."""

    code = "INTERNAL"
