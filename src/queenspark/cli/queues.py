"""`queenspark queues`: list, inspect, create and delete queues."""

from typing import Annotated, Any

import typer

from queenspark.cli.broker_api import BrokerApi
from queenspark.cli.confirm import confirm
from queenspark.cli.exits import Exit, Failure
from queenspark.cli.noun import noun
from queenspark.cli.options import AsJson, Limit, Offset, QueueName, Search, Sort, Url, Yes
from queenspark.cli.output import out, print_facts, print_json, print_page, print_table, records_of, say

app = noun("List, inspect, create and delete queues.")

COLUMNS = [
    ("queue", "name"),
    ("namespace", "namespace"),
    ("task", "task"),
    ("partitions", "partitions"),
    ("messages", "messages.total"),
    ("pending", "messages.pending"),
    ("processing", "messages.processing"),
    ("created", "createdAt"),
]
PARTITIONS = [("partition", "name"), ("id", "id"), ("created", "createdAt")]
GROUPS = [("group", "name"), ("lag", "lag"), ("processing", "processing"), ("oldest", "oldest")]


@app.command("list")
def list_queues(
    search: Search = None,
    sort: Sort = "name",
    limit: Limit = 100,
    offset: Offset = 0,
    windows: Annotated[bool, typer.Option("--windows", help="Include the window queues of streams.")] = False,
    url: Url = None,
    as_json: AsJson = False,
) -> None:
    """List the queues (default of `queenspark queues`)."""
    query = {"search": search, "sort": sort, "limit": limit, "offset": offset, "windows": windows or None}
    with BrokerApi(url) as broker:
        response = broker.get("resources", "queues", query=query)
    nothing = "No queue matches." if search or offset else "No queues yet; the first push creates one."
    print_page(response, "queues", COLUMNS, nothing=nothing, offset=offset, as_json=as_json)


@app.command("show")
def show_queue(queue: QueueName, url: Url = None, as_json: AsJson = False) -> None:
    """Show a queue: options, counts, partitions and groups."""
    with BrokerApi(url) as broker:
        response = broker.get("resources", "queues", queue)
    if as_json:
        return print_json(response)
    lists = {
        "partitions": records_of(response, "partitions"),
        "consumerGroups": records_of(response, "consumerGroups"),
    }
    print_facts({name: value for name, value in response.items() if name not in lists})
    for records, columns in zip(lists.values(), (PARTITIONS, GROUPS), strict=True):
        if records:
            out().print()
            print_table(records, columns)
    return None


@app.command("create")
def create_queue(
    queue: QueueName,
    namespace: Annotated[str | None, typer.Option(help="Namespace, for pops across queues.")] = None,
    task: Annotated[str | None, typer.Option(help="Task, for pops across queues.")] = None,
    lease_time: Annotated[int | None, typer.Option(help="Lease duration of a batch, in seconds.")] = None,
    retry_limit: Annotated[
        int | None, typer.Option(help="Retries before a message becomes a dead letter.")
    ] = None,
    retry_delay: Annotated[int | None, typer.Option(help="Milliseconds before the first retry.")] = None,
    ttl: Annotated[int | None, typer.Option(help="Seconds after which an unread message expires.")] = None,
    max_size: Annotated[
        int | None, typer.Option(help="Maximum backlog in messages; 0 means no limit.")
    ] = None,
    priority: Annotated[
        int | None, typer.Option(help="Priority within a namespace or task; higher is popped first.")
    ] = None,
    delayed_processing: Annotated[
        int | None, typer.Option(help="Seconds for which a new message stays hidden.")
    ] = None,
    window_buffer: Annotated[
        int | None, typer.Option(help="Hide a partition until it has had no push for this many seconds.")
    ] = None,
    retention_seconds: Annotated[
        int | None, typer.Option(help="Age in seconds at which messages are deleted.")
    ] = None,
    completed_retention_seconds: Annotated[
        int | None, typer.Option(help="Age in seconds at which messages acked by every group are deleted.")
    ] = None,
    retention: Annotated[
        bool | None, typer.Option("--retention/--no-retention", help="Enable or disable retention.")
    ] = None,
    encryption: Annotated[
        bool | None, typer.Option("--encryption/--no-encryption", help="Encrypt payloads at rest.")
    ] = None,
    dead_letters: Annotated[
        bool | None,
        typer.Option(
            "--dead-letters/--no-dead-letters",
            help="Create dead letters after the retry limit, or retry forever.",
        ),
    ] = None,
    dead_letter_queue: Annotated[
        str | None, typer.Option(metavar="QUEUE", help="Queue that receives a copy of each dead letter.")
    ] = None,
    max_wait: Annotated[
        int | None, typer.Option(help="Seconds after which an unread message becomes a dead letter.")
    ] = None,
    url: Url = None,
    as_json: AsJson = False,
) -> None:
    """Create a queue or change its options; omitted options are reset to their defaults."""
    given: dict[str, Any] = {
        "leaseTime": lease_time,
        "retryLimit": retry_limit,
        "retryDelay": retry_delay,
        "ttl": ttl,
        "maxSize": max_size,
        "priority": priority,
        "delayedProcessing": delayed_processing,
        "windowBuffer": window_buffer,
        "retentionSeconds": retention_seconds,
        "completedRetentionSeconds": completed_retention_seconds,
        "retentionEnabled": retention,
        "encryptionEnabled": encryption,
        "dlqAfterMaxRetries": dead_letters,
        "deadLetterQueue": dead_letter_queue,
        "maxWaitTimeSeconds": max_wait,
    }
    body: dict[str, Any] = {"queue": queue, "namespace": namespace, "task": task}
    body = {name: value for name, value in body.items() if value is not None}
    body["options"] = {name: value for name, value in given.items() if value is not None}
    with BrokerApi(url) as broker:
        response = broker.post("configure", body=body)
    if as_json:
        return print_json(response)
    return say(f"Configured the queue {queue}.")


@app.command("delete")
def delete_queue(queue: QueueName, yes: Yes = False, url: Url = None, as_json: AsJson = False) -> None:
    """Delete a queue with all its messages."""
    confirm(f"Delete the queue {queue} with all its messages?", yes)
    with BrokerApi(url) as broker:
        response = broker.delete("resources", "queues", queue)
    if as_json:
        print_json(response)
    if isinstance(response, dict) and not response.get("existed", True):
        raise Failure(f"The queue {queue} does not exist.", Exit.NOTHING)
    if not as_json:
        say(f"Deleted the queue {queue}.")
