"""What can go wrong in the store, as one tree."""


class StoreError(Exception):
    """Base of all errors of the store."""


class DatabaseUnavailable(StoreError):
    """The database cannot be reached or went away; trying again later is safe."""


class FunctionsMissing(StoreError):
    """The database was not migrated by this version; `queenspark migrate` installs its functions."""


class DatabaseBusy(StoreError):
    """No connection became free in time; trying again later is safe."""


class Conflict(StoreError):
    """Two requests were in each other's way; trying again is safe."""


class Refused(StoreError):
    """The request cannot be done as it stands; the message says why and what to change."""


class QueueFull(StoreError):
    """The queue has reached its maxSize."""


class TransactionRefused(StoreError):
    """A transaction was refused and changed nothing; `code` is the outcome of the ack that was refused."""

    def __init__(self, message: str, code: str) -> None:
        super().__init__(message)
        self.code = code


class ChangedMeanwhile(StoreError):
    """A queue or group was deleted or reconfigured while a statement used what was known of it."""


class WorkerDied(StoreError):
    """Another worker of the pipeline died while it computed a job; this one must not hide which one."""


class LostLeadership(StoreError):
    """Another pipeline process leads now: what this one wanted to write is not written."""
