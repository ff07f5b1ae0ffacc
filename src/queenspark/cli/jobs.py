"""`queenspark jobs`: SQL jobs, their state, and their dead records."""

from typing import Annotated, Any

import msgspec
import typer

from queenspark.cli.broker_api import BrokerApi
from queenspark.cli.confirm import confirm
from queenspark.cli.exits import Failure
from queenspark.cli.explain import print_explanation
from queenspark.cli.noun import noun
from queenspark.cli.options import AsJson, Limit, Offset, Search, Sort, Url, Yes
from queenspark.cli.output import out, print_facts, print_json, print_page, print_table, records_of, say
from queenspark.client.errors import SqlError
from queenspark.client.sync.lines import Lines

app = noun("List, inspect, explain, pause, resume, restart and drop SQL jobs.")

JobName = Annotated[
    str, typer.Argument(metavar="JOB", help="Name of the job; NAMESPACE.NAME outside the namespace default.")
]

COLUMNS = [
    ("job", "fullName"),
    ("state", "state"),
    ("version", "version"),
    ("records/s", "recordsPerSecond"),
    ("rows/s", "rowsPerSecond"),
    ("lag, s", "lagSeconds"),
    ("open", "openWindows"),
    ("late", "late"),
    ("dead", "dead"),
    ("last error", "lastError"),
]
ROWS = [("column", "name"), ("type", "type")]
DEAD = [
    ("seen", "seenAt"),
    ("key", "key"),
    ("window", "windowStart"),
    ("queue", "queue"),
    ("partition", "partition"),
    ("transaction id", "transactionId"),
    ("reason", "reason"),
]


@app.command("list")
def list_jobs(
    namespace: Annotated[
        str | None, typer.Option("--namespace", metavar="NAME", help="Only jobs of this namespace.")
    ] = None,
    search: Search = None,
    sort: Sort = "name",
    limit: Limit = 100,
    offset: Offset = 0,
    url: Url = None,
    as_json: AsJson = False,
) -> None:
    """List the jobs (default of `queenspark jobs`)."""
    page = {"search": search, "sort": sort, "limit": limit, "offset": offset}
    with BrokerApi(url) as broker:
        response = broker.get("jobs", query={"namespace": namespace, **page})
    nothing = "No jobs found; create one with `queenspark sql`."
    print_page(
        response, "jobs", COLUMNS, nothing=nothing, offset=offset, as_json=as_json, shown=_with_full_name
    )


@app.command("show")
def show_job(job: JobName, url: Url = None, as_json: AsJson = False) -> None:
    """Show a job: statement, columns, rates, lag and last error."""
    with BrokerApi(url) as broker:
        response = broker.get("jobs", job)
    if as_json:
        return print_json(response)
    print_facts({name: value for name, value in response.items() if name != "columns"})
    out().print()
    return print_table(records_of(response, "columns"), ROWS)


@app.command("explain")
def explain_job(job: JobName, url: Url = None, as_json: AsJson = False) -> None:
    """Explain why a job's next window is not sealed, or why it emits no rows; most likely reason first."""
    with BrokerApi(url) as broker:
        response = broker.get("jobs", job, "explain")
    return print_json(response) if as_json else print_explanation("job", job, response)


@app.command("pause")
def pause_job(job: JobName, url: Url = None, as_json: AsJson = False) -> None:
    """Pause a job; it keeps its position, and resuming it loses no rows."""
    _control(job, "pause", url, as_json)


@app.command("resume")
def resume_job(job: JobName, url: Url = None, as_json: AsJson = False) -> None:
    """Resume a paused job from its position."""
    _control(job, "resume", url, as_json)


@app.command("restart")
def restart_job(job: JobName, url: Url = None, as_json: AsJson = False) -> None:
    """Restart a failed job from its position."""
    _control(job, "restart", url, as_json)


@app.command("drop")
def drop_job(
    job: JobName,
    cascade: Annotated[
        bool,
        typer.Option(
            "--cascade", help="Also drop the jobs and streams that read it, and its consumer groups."
        ),
    ] = False,
    yes: Yes = False,
    url: Url = None,
    as_json: AsJson = False,
) -> None:
    """Drop a job with all its rows; rejected while it has readers, unless --cascade is given."""
    with BrokerApi(url) as broker:
        broker.get("jobs", job)
        others = [name for name in _would_drop(broker, job, cascade) if name != job]
        also = f", and also {', '.join(others)}" if others else ""
        confirm(f"Drop the job {job} with all its rows{also}?", yes)
        response = broker.delete("jobs", job, query={"cascade": cascade})
    if as_json:
        return print_json(response)
    return say(f"Dropped: {', '.join(response['dropped'])}.")


@app.command("dead")
def list_dead(
    job: JobName, limit: Limit = 100, offset: Offset = 0, url: Url = None, as_json: AsJson = False
) -> None:
    """List the failed records and rows of a job with the reason, newest first."""
    with BrokerApi(url) as broker:
        response = broker.get("jobs", job, "dead", query={"limit": limit, "offset": offset})
    if as_json:
        return print_json(response)
    dead = records_of(response, "dead")
    if not dead:
        return say(f"The job {job} has no dead records{' there' if offset else ''}.")
    print_table(dead, DEAD)
    return say("Use --limit and --offset for more.") if len(dead) == limit else None


def _control(job: str, action: str, url: str | None, as_json: bool) -> None:
    with BrokerApi(url) as broker:
        response = broker.post("jobs", job, action)
    if as_json:
        return print_json(response)
    return say(f"The job {job} is {response['state']}.")


def _with_full_name(job: dict[str, Any]) -> dict[str, Any]:
    is_default = job["namespace"] == "default"
    return {**job, "fullName": job["name"] if is_default else f"{job['namespace']}.{job['name']}"}


class _Dropped(msgspec.Struct):
    dropped: list[str] = []


def _would_drop(broker: BrokerApi, job: str, cascade: bool) -> list[str]:
    """Everything that would be dropped; a rejection names the users."""
    name = ".".join(f"`{part}`" for part in job.split("."))
    try:
        response = broker.sql(f"DROP STREAM {name}{' CASCADE' if cascade else ''}", dry_run=True)
    except SqlError as error:
        reason = str(error).replace("use CASCADE", "use --cascade")
        raise Failure(f"The broker rejected the request: {reason}") from None
    assert not isinstance(response, Lines), "DROP is not a SELECT"
    return [name for result in response for name in msgspec.json.decode(result, type=_Dropped).dropped]
