"""Reads and changes of jobs and declarations on one connection."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any
from uuid import uuid4

import msgspec
from psycopg.rows import dict_row

from ..windows.membership import OVER
from .definitions import Body, Cut, job_name, sink_queue, temporary_queue
from .encryption import Cipher
from .errors import Refused
from .job import Condition, How, Job, State, WantedJob, error_of, to_job
from .queries import query
from .relations import Relations
from .versions import Connection, Versions

_SAMPLE_BYTES = 16 * 1024 * 1024  # of messages sampled for types
_TEMPORARY = "%select"  # namespace of temporary jobs
_TAKEN = {
    "queue": "the queue {queue} already exists; choose another name, or delete the queue",
    "staged": "messages for the queue {queue} are staged; choose another name, or turn push maintenance off",
    "dead letters": "{queue} is the deadLetterQueue of {by}; choose another name",
}


class JobChange:
    """Reads and changes jobs and declarations on one connection."""

    def __init__(self, connection: Connection, cipher: Cipher) -> None:
        self.connection = connection
        self._cipher = cipher
        self.relations = Relations(connection)
        #: Queues that were created, changed or deleted.
        self.changed_queues: list[str] = []

    # Reading

    async def find(self, namespace: str, name: str) -> Job | None:
        """Return a job by name, if it exists; never a temporary one."""
        return next(iter(await self._jobs("find_job", namespace=namespace, name=name, temporary=False)), None)

    async def all(self, *, temporary: bool = False) -> list[Job]:
        """Return all jobs by name."""
        return await self._jobs("find_job", namespace=None, name=None, temporary=temporary)

    async def readers(self, queue_id: int) -> list[Job]:
        """Return the jobs and the streams of windows (without a body) that read a queue."""
        return await self._jobs("readers", queue_id=queue_id)

    async def expired(self) -> list[Job]:
        """Return the expired temporary jobs."""
        return await self._jobs("expired_jobs")

    async def groups(self, job: Job) -> list[str]:
        """Return the consumer groups of a job's rows."""
        rows = await self.connection.execute(query("group_names"), {"queue_id": job.queue_id})
        return [row[0] for row in await rows.fetchall()]

    async def queue_ids(self, names: Sequence[str]) -> dict[str, int]:
        """Return the ids of those of these queues that exist."""
        rows = await self.connection.execute(query("queue_ids"), {"names": list(names)})
        found: dict[str, int] = dict(await rows.fetchall())
        return {name: found[name] for name in names if name in found}

    async def queue_names(self) -> list[str]:
        """Return the names of all visible queues."""
        rows = await self.connection.execute(query("all_queue_names"))
        return [row[0] for row in await rows.fetchall()]

    async def newest_payloads(self, queue_id: int, limit: int) -> list[str]:
        """Return the newest payloads of a queue, up to `limit` and a size limit."""
        params = {"queue_id": queue_id, "limit": limit, "most_bytes": _SAMPLE_BYTES}
        rows = await self.connection.execute(query("newest_payloads"), params)
        return [
            self._cipher.decrypt(payload, transaction_id) if encrypted else payload
            for payload, encrypted, transaction_id in await rows.fetchall()
        ]

    async def conditions(self, jobs: Sequence[Job]) -> dict[int, Condition]:
        """Return the condition of some jobs, by id."""
        params = {"ids": [job.id for job in jobs]}
        states = await self._by_id("stream_state", params)
        rates = await self._by_id("stream_rates", params)
        troubles = await self._by_id("job_troubles", params)
        runs = await self._by_id("job_runs", params)
        found: dict[int, Condition] = {}
        for job in jobs:
            if job.id in states:
                error = error_of(troubles.get(job.id))
                run = runs.get(job.id)
                state: State = "paused" if job.definition.paused else "failed" if error else "running"
                if run is not None and run["finished_at"] is not None:
                    state = "finished"
                found[job.id] = Condition(state, error, states[job.id], rates.get(job.id, {}), run)
        return found

    async def alone(self) -> list[Job]:
        """Return jobs that have, or wait for, their own query: neither dropped nor finished."""
        found = [job for job in await self.all(temporary=True) if job.body and job.body.runs_alone]
        runs = await self._by_id("job_runs", {"ids": [job.id for job in found]})
        return [job for job in found if (runs.get(job.id) or {"finished_at": None})["finished_at"] is None]

    # Changing

    async def ensure_queues(self, names: Sequence[str]) -> None:
        """Create those of these queues that do not exist."""
        missing = sorted(set(names) - (await self.queue_ids(names)).keys())
        if missing:
            await self.connection.execute(query("ensure_queues"), {"names": missing})
            self.changed_queues += missing

    async def create(self, wanted: WantedJob) -> Job:
        """Create a job and its queue; raises Refused if a queue or stream has its name."""
        namespace, name = wanted.namespace, wanted.name
        full_name = job_name(namespace, name)
        rows = await self.connection.execute(query("find_stream"), {"namespace": namespace, "name": name})
        if await rows.fetchone() is not None:
            raise Refused(f"the windowed stream {full_name} already exists; choose another name")
        queue = full_name if wanted.writes is None else sink_queue(full_name)
        job_id = await self._add(namespace, name, queue, wanted.retention_seconds or 0, None)
        await self._begin(job_id, wanted)
        job = await self.find(namespace, name)
        assert job is not None
        return job

    async def create_temporary(self, wanted: WantedJob, seconds: float) -> Job:
        """Create an unnamed job that expires after this many seconds, unless renewed."""
        name = uuid4().hex
        wanted = msgspec.structs.replace(wanted, namespace=_TEMPORARY, name=name)
        job_id = await self._add(_TEMPORARY, name, temporary_queue(name), 0, seconds)
        await self._begin(job_id, wanted)
        return (await self._jobs("find_job", namespace=_TEMPORARY, name=name, temporary=True))[0]

    async def replace(self, job: Job, wanted: WantedJob, how: How) -> Job:
        """Redefine a job. A failed one is replaced by position, from its failure on."""
        old = job.definition
        queue_ids = await self._sources(wanted)
        versions = Versions(self.connection, queue_ids)
        failed_at = await versions.row("failed_at", stream_id=job.id, version=job.version)
        version = job.version
        new = _body(wanted, paused=old.paused)
        if how == "in place":
            new = msgspec.structs.replace(old, query=new.query, spec=new.spec)
            await versions.add(job.id, version, new)
        else:
            version += 1
            if new.runs_alone or old.runs_alone:
                # An external source has no position in the log: the next version starts at its own start.
                await versions.add(job.id, version - 1, msgspec.structs.replace(old, until_us=OVER))
                begun = await versions.begin(wanted.start)
                await versions.add(job.id, version, msgspec.structs.replace(new, sources=begun))
                await self._forget_failures(job, job.version)
            elif how == "at a boundary" and failed_at is None:
                await versions.take_over(job.id, version, old, new)
            else:
                await versions.cut_over(
                    job.id, version, old, new, None if failed_at is None else Cut(*failed_at)
                )
                await self._forget_failures(job, job.version)
        await self.connection.execute(query("change_job"), {"id": job.id, "version": version})
        if wanted.retention_seconds is not None:
            params = {"queue_id": job.queue_id, "retention_seconds": wanted.retention_seconds}
            await self.connection.execute(query("retain_rows"), params)
        self.changed_queues.append(job.queue)
        found = await self.find(job.namespace, job.name)
        assert found is not None
        return found

    async def set_query(self, job: Job, stored: dict[str, Any]) -> None:
        """Replace the stored query of a job, or of a computing stream, within its version."""
        body = msgspec.structs.replace(job.definition, query=stored)
        await self._versions().add(job.id, job.version, body)

    async def pause(self, job: Job) -> bool:
        """Pause a job, keeping its position; return whether it was running."""
        return await self._set_paused(job, paused=True)

    async def resume(self, job: Job) -> bool:
        """Resume a paused job; return whether it was paused."""
        return await self._set_paused(job, paused=False)

    async def restart(self, job: Job) -> bool:
        """Retry a failed job from its position; return whether it had failed."""
        if not await self._forget_failures(job):
            return False
        # A new seq with the same body makes the pipeline notice.
        await self._versions().add(job.id, job.version, job.definition)
        return True

    async def drop(self, job: Job) -> None:
        """Delete a job, or a stream, with its queue."""
        await self.connection.execute(query("end_definitions"), {"stream_id": job.id})
        await self.connection.execute(query("delete_queue"), {"name": job.queue})
        await self.connection.execute(query("forget_stream"), {"id": job.id})
        self.changed_queues.append(job.queue)

    async def _add(
        self, namespace: str, name: str, queue: str, retention_seconds: int, expires_in: float | None
    ) -> int:
        versions = self._versions()
        if (taken := await versions.row("queue_taken", name=queue)) is not None:
            raise Refused(_TAKEN[taken[0]].format(queue=queue, by=taken[1]))
        row = await versions.row("add_job_queue", name=queue, retention_seconds=retention_seconds)
        if row is None:
            raise Refused(_TAKEN["queue"].format(queue=queue))
        self.changed_queues.append(queue)
        added = await versions.row(
            "add_job", namespace=namespace, name=name, queue_id=row[0], expires_in=expires_in
        )
        assert added is not None
        return int(added[0])

    async def _begin(self, job_id: int, wanted: WantedJob) -> None:
        versions = Versions(self.connection, await self._sources(wanted))
        body = msgspec.structs.replace(_body(wanted), sources=await versions.begin(wanted.start))
        await versions.add(job_id, 1, body)

    async def _sources(self, wanted: WantedJob) -> dict[str, int]:
        found = await self.queue_ids(wanted.queues)
        if missing := [name for name in wanted.queues if name not in found]:
            raise Refused(f"the queue {missing[0]} does not exist")
        return found

    async def _set_paused(self, job: Job, *, paused: bool) -> bool:
        """Pause or resume all versions with pending output together."""
        changed = False
        versions = self._versions()
        for definition in await versions.live(job.id):
            if definition.body.paused != paused:
                body = msgspec.structs.replace(definition.body, paused=paused)
                await versions.add(job.id, definition.version, body)
                changed = True
        return changed

    async def _forget_failures(self, job: Job, version: int | None = None) -> bool:
        params = {"stream_id": job.id, "version": version}
        cursor = await self.connection.execute(query("forget_failures"), params)
        return cursor.rowcount > 0

    def _versions(self) -> Versions:
        return Versions(self.connection, {})

    async def _by_id(self, statement: str, params: dict[str, Any]) -> dict[int, dict[str, Any]]:
        async with self.connection.cursor(row_factory=dict_row) as cursor:
            await cursor.execute(query(statement), params)
            return {row["id"]: row for row in await cursor.fetchall()}

    async def _jobs(self, statement: str, /, **params: Any) -> list[Job]:
        async with self.connection.cursor(row_factory=dict_row) as cursor:
            await cursor.execute(query(statement), params)
            return [to_job(row) for row in await cursor.fetchall()]


def _body(wanted: WantedJob, *, paused: bool = False) -> Body:
    return Body(
        name=wanted.name, namespace=wanted.namespace, partitioned=True, spec=wanted.spec, event_time=None,
        sources=(), start=wanted.start, query=wanted.query, paused=paused, reads=wanted.reads,
        writes=wanted.writes,
    )  # fmt: skip
