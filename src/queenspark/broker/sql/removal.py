"""DROP: the objects it removes, and the readers that block it."""

from __future__ import annotations

from collections.abc import Sequence

from ...sql.statements import Drop
from ...store.errors import Refused
from ...store.job import Job
from ...store.job_change import JobChange
from ...store.relations import Declared
from ..http import Caller, Right
from .catalogue import own_name
from .names import listed, no_such, split_name
from .rights import may_on_job
from .table import Result


class Removal:
    """Removes jobs and schemas."""

    def __init__(self, change: JobChange, caller: Caller) -> None:
        self._change = change
        self._caller = caller

    async def run(self, statement: Drop) -> Result:
        """Drop the objects named by a statement. Raises SqlError, or Refused while one is in use."""
        name = own_name(statement.name)
        done = {"kind": f"drop_{statement.object.lower()}", "name": name}
        job = await self._change.find(*split_name(name)) if statement.object != "SOURCE" else None
        if job is not None and (job.definition.writes is not None) != (statement.object == "SINK"):
            job = None
        declared = await self._change.relations.find(name)
        if declared is not None and declared.kind != {"STREAM": "schema"}.get(statement.object, "source"):
            declared = None
        if job is not None:
            gone = await self.drop(job, cascade=statement.cascade)
        elif declared is not None:
            gone = await self._drop_declared(declared, cascade=statement.cascade)
        elif statement.if_exists:
            return {**done, "changed": False, "dropped": []}
        else:
            raise await no_such(self._change, self._caller, statement.object.lower(), name, statement.span)
        return {**done, "changed": True, "dropped": gone}

    async def drop(self, job: Job, *, cascade: bool) -> list[str]:
        """Drop a job, with `cascade` also its readers; return all dropped names. Raises Refused."""
        readers = await self._change.readers(job.queue_id)
        lasting = [reader for reader in readers if reader.expires_at is None]
        groups = await self._change.groups(job)
        if not cascade and (lasting or groups):
            users = [self._shown(reader) for reader in lasting]
            sees_groups = self._caller.may(Right.QUEUE_READ, job.queue)
            users += [f"the consumer group {group}" if sees_groups else None for group in groups]
            raise Refused(f"{job.full_name} is used by {listed(users)}; drop these first, or use CASCADE")
        gone = await self._drop_readers(job.full_name, readers)
        await self._change.drop(job)
        return [*gone, job.full_name] if job.expires_at is None else gone

    async def _drop_declared(self, declared: Declared, *, cascade: bool) -> list[str]:
        """Keep the underlying queues, and temporary jobs, which are already planned."""
        kinds = ("schema",) if declared.kind == "schema" else ("files", "kafka")
        readers = [
            job
            for job in await self._change.all()
            if job.query["relation"]["kind"] in kinds and job.query["relation"]["name"] == declared.name
        ]
        if readers and not cascade:
            users = listed([self._shown(reader) for reader in readers])
            raise Refused(f"{declared.name} is used by {users}; drop these first, or use CASCADE")
        gone = await self._drop_readers(declared.name, readers)
        await self._change.relations.delete(declared.name)
        return [*gone, declared.name]

    async def _drop_readers(self, name: str, readers: Sequence[Job]) -> list[str]:
        gone: list[str] = []
        for reader in readers:
            if reader.expires_at is None and not may_on_job(self._caller, reader, "admin"):
                raise Refused(f"{name} is used by objects that you have no access to")
            if reader.full_name not in gone:
                gone += await self.drop(reader, cascade=True)
        return gone

    def _shown(self, reader: Job) -> str | None:
        """A reader for an error; None if the caller may not see it."""
        if not may_on_job(self._caller, reader, "read"):
            return None
        return f"{'the windowed stream' if reader.is_stream else 'the job'} {reader.full_name}"
