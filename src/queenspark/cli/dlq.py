"""`queenspark dlq`: dead letters, the messages that failed too often."""

from typing import Annotated, Any

import typer

from queenspark.cli.broker_api import BrokerApi
from queenspark.cli.confirm import confirm
from queenspark.cli.exits import Exit, Failure
from queenspark.cli.noun import noun
from queenspark.cli.options import AsJson, Partition, Url, Yes
from queenspark.cli.output import print_facts, print_json, print_table, records_of, say
from queenspark.cli.pop import as_text

app = noun("List, inspect, retry and delete dead letters.")

PAGE = 100

COLUMNS = [
    ("queue", "queue"),
    ("partition", "partition"),
    ("group", "consumerGroup"),
    ("partition id", "partitionId"),
    ("transaction id", "transactionId"),
    ("retries", "retryCount"),
    ("failed", "failedAt"),
    ("error", "errorMessage"),
    ("data", "shown"),
]

OF_ONE = [column for column in COLUMNS if column[0] in ("group", "retries", "failed", "error")]

Filter = dict[str, Any]

PartitionId = Annotated[str, typer.Argument(metavar="PARTITION_ID", help="Partition id, as listed.")]
TransactionId = Annotated[str, typer.Argument(metavar="TRANSACTION_ID", help="Transaction id, as listed.")]
MaybePartitionId = Annotated[
    str | None, typer.Argument(metavar="PARTITION_ID", help="Partition id, as listed.")
]
MaybeTransactionId = Annotated[
    str | None, typer.Argument(metavar="TRANSACTION_ID", help="Transaction id, as listed.")
]
OfQueue = Annotated[str | None, typer.Option("--queue", metavar="QUEUE", help="Only this queue.")]
OfGroup = Annotated[str | None, typer.Option("--group", metavar="GROUP", help="Only this consumer group.")]
Since = Annotated[
    str | None,
    typer.Option("--since", metavar="TIME", help="Only those that failed at or after this ISO time."),
]
Until = Annotated[
    str | None, typer.Option("--until", metavar="TIME", help="Only those that failed before this ISO time.")
]


@app.command("list")
def list_dead_letters(
    queue: OfQueue = None,
    group: OfGroup = None,
    partition: Partition = None,
    since: Since = None,
    until: Until = None,
    limit: Annotated[int, typer.Option(min=1, help="Maximum number of dead letters to show.")] = PAGE,
    offset: Annotated[int, typer.Option(min=0, help="Dead letters to skip.")] = 0,
    url: Url = None,
    as_json: AsJson = False,
) -> None:
    """List dead letters (default of `queenspark dlq`)."""
    query = {**_filter(queue, group, partition, since, until), "limit": limit, "offset": offset}
    with BrokerApi(url) as broker:
        response = broker.get("dlq", query=query)
    if as_json:
        return print_json(response)
    letters = records_of(response, "messages")
    if not letters:
        return say("No dead letters.")
    print_table([{**letter, "shown": as_text(letter.get("data"))} for letter in letters], COLUMNS)
    return say(f"{len(letters):,} of {response.get('total', len(letters)):,} dead letters.")


@app.command("show")
def show_dead_letter(
    partition_id: PartitionId, transaction_id: TransactionId, url: Url = None, as_json: AsJson = False
) -> None:
    """Show a message and its dead letters, one per group that gave up on it."""
    with BrokerApi(url) as broker:
        response = broker.get("messages", partition_id, transaction_id)
    if as_json:
        return print_json(response)
    letters = records_of(response, "deadLetters")
    shown = {name: value for name, value in response.items() if name not in ("data", "deadLetters")}
    print_facts({**shown, "data": as_text(response.get("data"))})
    return print_table(letters, OF_ONE) if letters else say("This message is not a dead letter.")


@app.command("retry")
def retry_dead_letters(
    partition_id: MaybePartitionId = None,
    transaction_id: MaybeTransactionId = None,
    queue: OfQueue = None,
    group: OfGroup = None,
    partition: Partition = None,
    since: Since = None,
    until: Until = None,
    yes: Yes = False,
    url: Url = None,
) -> None:
    """Retry one dead letter, or all that match a filter: their groups receive them again."""
    chosen = _filter(queue, group, partition, since, until)
    with BrokerApi(url) as broker:
        if (name := _name(partition_id, transaction_id, chosen)) is not None:
            response = broker.post("messages", *name, "retry")
        else:
            confirm(f"Retry {_matching(broker, chosen)}?", yes)
            response = broker.post("dlq", "retry", query=chosen)
    say(f"Retried {_count(response['count'])}.")


@app.command("delete")
def delete_dead_letters(
    partition_id: MaybePartitionId = None,
    transaction_id: MaybeTransactionId = None,
    queue: OfQueue = None,
    group: OfGroup = None,
    partition: Partition = None,
    since: Since = None,
    until: Until = None,
    yes: Yes = False,
    url: Url = None,
) -> None:
    """Delete one dead letter, or all that match a filter; the messages stay in the log."""
    chosen = _filter(queue, group, partition, since, until)
    with BrokerApi(url) as broker:
        if (name := _name(partition_id, transaction_id, chosen)) is not None:
            chosen = {"partitionId": name[0], "transactionId": name[1]}
        confirm(f"Delete {_matching(broker, chosen)}?", yes)
        response = broker.delete("dlq", query=chosen)
    return say(f"Deleted {_count(response['count'])}.")


def _filter(
    queue: str | None, group: str | None, partition: str | None, since: str | None, until: str | None
) -> Filter:
    given = {"queue": queue, "consumerGroup": group, "partition": partition, "from": since, "to": until}
    return {name: value for name, value in given.items() if value is not None}


def _name(partition_id: str | None, transaction_id: str | None, chosen: Filter) -> tuple[str, str] | None:
    """The one message that was named; None when a filter was given instead."""
    if partition_id is not None and transaction_id is not None and not chosen:
        return partition_id, transaction_id
    if partition_id is not None or not ("queue" in chosen or "consumerGroup" in chosen):
        raise Failure(
            "Pass PARTITION_ID and TRANSACTION_ID, or a filter with --queue or --group.",
            Exit.USAGE,
        )
    return None


def _matching(broker: BrokerApi, chosen: Filter) -> str:
    """How many a filter matches, in words."""
    total = broker.get("dlq", query={**chosen, "limit": 1})["total"]
    if not total:
        raise Failure("No dead letters match.", Exit.NOTHING)
    return _count(total)


def _count(number: int) -> str:
    return "1 dead letter" if number == 1 else f"{number:,} dead letters"
