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
    "Guarded",
    "NotInitialized",
    "AlreadyInitialized",
    "NotSelected",
    "StaleEpoch",
    "Incomplete",
    "NoSpace",
    "JobExists",
    "Unfinished",
    "JobReplaced",
    "NotSampled",
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
    "HistoryLost",
    "FoldFailed",
    "TapeDamaged",
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
    "BadArchive",
    "Internal",
]


class BadMessage(Error, code="BAD_MESSAGE", number=1):
    """BAD_MESSAGE: the message is malformed or truncated."""


class BadChecksum(Error, code="BAD_CHECKSUM", number=2):
    """BAD_CHECKSUM: the checksum does not match the bytes."""


class BadVersion(Error, code="BAD_VERSION", number=3):
    """BAD_VERSION: the protocol version is not spoken here."""


class BadName(Error, ValueError, code="BAD_NAME", number=4):
    """BAD_NAME: a name is empty, too long or not valid."""


class BadDtype(Error, TypeError, code="BAD_DTYPE", number=5):
    """BAD_DTYPE: the element type is wrong or unknown."""


class BadShape(Error, ValueError, code="BAD_SHAPE", number=6):
    """BAD_SHAPE: the shape is wrong or not valid."""


class BadLength(Error, ValueError, code="BAD_LENGTH", number=7):
    """BAD_LENGTH: the number of bytes is wrong."""


class BadValue(Error, ValueError, code="BAD_VALUE", number=8):
    """BAD_VALUE: an argument is out of its range."""


class BadConfig(Error, ValueError, code="BAD_CONFIG", number=9):
    """BAD_CONFIG: the parameter configuration is not valid."""


class BadReply(Error, code="BAD_REPLY", number=10):
    """BAD_REPLY: the reply subject is not under the trainer's inbox."""


class NonFinite(Error, ValueError, code="NON_FINITE", number=11):
    """NON_FINITE: the update holds a NaN or an infinity and the parameter does not allow them."""


class NoLearningRate(Error, ValueError, code="NO_LEARNING_RATE", number=12):
    """NO_LEARNING_RATE: neither the parameter nor the call gives a learning rate."""


class Unsupported(Error, TypeError, code="UNSUPPORTED", number=13):
    """UNSUPPORTED: the element type does not take this update."""


class Empty(Error, ValueError, code="EMPTY", number=14):
    """EMPTY: the list is empty."""


class TooLarge(Error, ValueError, code="TOO_LARGE", number=15):
    """TOO_LARGE: more than a stated limit allows."""


class UnknownParameter(Error, KeyError, code="UNKNOWN_PARAMETER", number=16):
    """UNKNOWN_PARAMETER: no parameter has this name."""


class Static(Error, code="STATIC", number=17):
    """STATIC: the parameter is static: it takes no update."""


class BadIndex(Error, IndexError, code="BAD_INDEX", number=18):
    """BAD_INDEX: an index is out of range or out of order."""


class Guarded(Error, code="GUARDED", number=19):
    """GUARDED: the norm is above the limit of the parameter's guard."""


class NotInitialized(Error, code="NOT_INITIALIZED", number=20, retryable=True):
    """NOT_INITIALIZED: the job is not initialized yet."""


class AlreadyInitialized(Error, code="ALREADY_INITIALIZED", number=21):
    """ALREADY_INITIALIZED: it is initialized already."""


class NotSelected(Error, code="NOT_SELECTED", number=22):
    """NOT_SELECTED: this trainer is not the one selected to initialize."""


class StaleEpoch(Error, code="STALE_EPOCH", number=23):
    """STALE_EPOCH: the message belongs to an initialization that was replaced."""


class Incomplete(Error, code="INCOMPLETE", number=24):
    """INCOMPLETE: declared blocks have not been initialized."""


class NoSpace(Error, code="NO_SPACE", number=25):
    """NO_SPACE: the broker cannot hold the journals and state."""


class JobExists(Error, code="JOB_EXISTS", number=26):
    """JOB_EXISTS: a job of this name exists with other settings."""


class Unfinished(Error, code="UNFINISHED", number=27):
    """UNFINISHED: an earlier change of the job is to be completed or dropped first."""


class JobReplaced(Error, code="JOB_REPLACED", number=28):
    """JOB_REPLACED: the job was made anew since this trainer joined: connect again."""


class NotSampled(Error, code="NOT_SAMPLED", number=29):
    """NOT_SAMPLED: others were drawn to contribute to the round."""


class Superseded(Error, code="SUPERSEDED", number=30):
    """SUPERSEDED: a newer session of this trainer has joined."""


class Rejoin(Error, code="REJOIN", number=31):
    """REJOIN: the session has ended; join again."""


class Settled(Error, code="SETTLED", number=32):
    """SETTLED: the record was settled before and its outcome has been forgotten."""


class Window(Error, code="WINDOW", number=33, retryable=True):
    """WINDOW: too many unsettled records of one trainer."""


class TooManyTrainers(Error, code="TOO_MANY_TRAINERS", number=34):
    """TOO_MANY_TRAINERS: the shard or the job has as many trainers as it may."""


class Late(Error, code="LATE", number=35):
    """LATE: the step has closed, or already has this gradient."""


class Early(Error, code="EARLY", number=36, retryable=True):
    """EARLY: the step before has not closed yet."""


class NotMember(Error, code="NOT_MEMBER", number=37):
    """NOT_MEMBER: the trainer is not a member of the job's steps."""


class Quota(Error, code="QUOTA", number=38):
    """QUOTA: the trainer or job exceeds what it may hold or waste."""


class JobDamaged(Error, code="JOB_DAMAGED", number=39):
    """JOB_DAMAGED: entries of the job are damaged, or older than what was done under them."""


class JournalFull(Error, code="JOURNAL_FULL", number=40, retryable=True):
    """JOURNAL_FULL: the journal has reached its limit."""


class JournalDamaged(Error, code="JOURNAL_DAMAGED", number=41):
    """JOURNAL_DAMAGED: the journal lost or changed a record."""


class JournalLost(Error, code="JOURNAL_LOST", number=42):
    """JOURNAL_LOST: the journal lost its newest records."""


class JournalReplaced(Error, code="JOURNAL_REPLACED", number=43):
    """JOURNAL_REPLACED: the position is of a journal that has been replaced."""


class SnapshotDamaged(Error, code="SNAPSHOT_DAMAGED", number=44):
    """SNAPSHOT_DAMAGED: a piece of a snapshot is lost or changed."""


class UnknownRules(Error, code="UNKNOWN_RULES", number=45):
    """UNKNOWN_RULES: this host does not have the rules the journal is written under."""


class JournalFault(Error, code="JOURNAL_FAULT", number=46, retryable=True):
    """JOURNAL_FAULT: the broker cannot write the journal, for a reason other than a full disk."""


class HistoryLost(Error, code="HISTORY_LOST", number=47):
    """HISTORY_LOST: the kept history does not reach back to the point."""


class FoldFailed(Error, code="FOLD_FAILED", number=48):
    """FOLD_FAILED: a record cannot be folded, because of a defect of this program."""


class TapeDamaged(Error, code="TAPE_DAMAGED", number=49):
    """TAPE_DAMAGED: the tape lacks lines of records that are no longer kept."""


class NoOwner(Error, ConnectionError, code="NO_OWNER", number=50, retryable=True):
    """NO_OWNER: no host serves the shard at the moment."""


class NotOwner(Error, code="NOT_OWNER", number=51, retryable=True):
    """NOT_OWNER: this host no longer owns the shard."""


class Busy(Error, code="BUSY", number=52, retryable=True):
    """BUSY: the host has too much work queued."""


class NoHost(Error, ConnectionError, code="NO_HOST", number=53, retryable=True):
    """NO_HOST: no host of the job answers."""


class NoMemory(Error, code="NO_MEMORY", number=54, retryable=True):
    """NO_MEMORY: the host has less free memory than the shard needs."""


class Timeout(Error, TimeoutError, code="TIMEOUT", number=60, retryable=True):
    """TIMEOUT: the call did not finish in its time."""


class OutcomeUnknown(Error, code="OUTCOME_UNKNOWN", number=61):
    """OUTCOME_UNKNOWN: each block update was applied once or not at all; which is not known."""


class Aborted(Error, code="ABORTED", number=62):
    """ABORTED: the caller aborted the call."""


class Closed(Error, code="CLOSED", number=63):
    """CLOSED: the client or host is closed."""


class NoBroker(Error, ConnectionError, code="NO_BROKER", number=70, retryable=True):
    """NO_BROKER: the broker cannot be reached."""


class NoJetstream(Error, code="NO_JETSTREAM", number=71):
    """NO_JETSTREAM: the broker runs without JetStream."""


class BrokerTooOld(Error, code="BROKER_TOO_OLD", number=72):
    """BROKER_TOO_OLD: the broker's version is too old."""


class PayloadTooSmall(Error, code="PAYLOAD_TOO_SMALL", number=73):
    """PAYLOAD_TOO_SMALL: the broker's max_payload is too small."""


class Denied(Error, PermissionError, code="DENIED", number=74):
    """DENIED: the broker refused the credentials or a subject."""


class NoEtcd(Error, ConnectionError, code="NO_ETCD", number=75, retryable=True):
    """NO_ETCD: etcd cannot be reached or does not answer."""


class JetstreamUnavailable(
    Error, ConnectionError, code="JETSTREAM_UNAVAILABLE", number=76, retryable=True
):
    """JETSTREAM_UNAVAILABLE: the broker's JetStream does not answer at the moment."""


class NoTls(Error, ConnectionError, code="NO_TLS", number=77):
    """NO_TLS: the broker offers no TLS, which was asked for, or has no trusted certificate."""


class AddressInUse(Error, code="ADDRESS_IN_USE", number=78):
    """ADDRESS_IN_USE: another process listens on the address."""


class BadPath(Error, ValueError, code="BAD_PATH", number=80):
    """BAD_PATH: the path leaves the model directory or is not valid."""


class BadFile(Error, code="BAD_FILE", number=81):
    """BAD_FILE: the file is not a valid model file."""


class MissingShard(Error, code="MISSING_SHARD", number=82):
    """MISSING_SHARD: a sparse parameter lacks one of its shards."""


class Io(Error, OSError, code="IO", number=83):
    """IO: the operating system refused a file operation."""


class DiskFull(Error, OSError, code="DISK_FULL", number=84):
    """DISK_FULL: no space is left on the device."""


class StoreInUse(Error, code="STORE_IN_USE", number=85):
    """STORE_IN_USE: another process uses the directory."""


class BadArchive(Error, code="BAD_ARCHIVE", number=86):
    """BAD_ARCHIVE: an archive or a recorded file is damaged, incomplete or of another job."""


class Internal(Error, code="INTERNAL", number=99):
    """INTERNAL: a defect of this program."""
