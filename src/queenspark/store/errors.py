"""The exceptions of the store, in one tree."""


class StoreError(Exception):
    """Base class of all store errors."""


class DatabaseUnavailable(StoreError):
    """The database is unreachable or the connection was lost; safe to retry later."""


class FunctionsMissing(StoreError):
    """The database was not migrated by this version; `queenspark migrate` installs its functions."""


class DatabaseBusy(StoreError):
    """No connection became free in time; safe to retry later."""


class Conflict(StoreError):
    """Two requests conflicted; safe to retry."""


class Refused(StoreError):
    """The request is invalid as it stands; the message states the problem and the fix."""


class QueueFull(StoreError):
    """The queue reached its maxSize."""


class TransactionRefused(StoreError):
    """A transaction was rejected as a whole; `code` is the outcome of the rejected ack."""

    def __init__(self, message: str, code: str) -> None:
        super().__init__(message)
        self.code = code


class ChangedMeanwhile(StoreError):
    """A queue or group was deleted or reconfigured while a statement relied on cached data."""


class WorkerDied(StoreError):
    """Another worker of the pipeline died while computing a job; this one must not hide which one."""


class LostLeadership(StoreError):
    """Another pipeline process is the leader now; nothing was written."""
