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

app = noun("List, look at, retry and delete dead letters.")

PAGE = 100

COLUMNS = [
    ("queue", ["queue", "queueName"]),
    ("partition", ["partition", "partitionName"]),
    ("group", ["consumerGroup"]),
    ("partition id", ["partitionId"]),
    ("transaction id", ["transactionId"]),
    ("retries", ["retryCount"]),
    ("failed", ["failedAt"]),
    ("error", ["errorMessage"]),
    ("data", ["shown"]),
]

DeadLetter = dict[str, Any]
Filter = dict[str, Any]

PartitionId = Annotated[str, typer.Argument(metavar="PARTITION_ID", help="As in the list.")]
TransactionId = Annotated[str, typer.Argument(metavar="TRANSACTION_ID", help="As in the list.")]
MaybePartitionId = Annotated[str | None, typer.Argument(metavar="PARTITION_ID", help="As in the list.")]
MaybeTransactionId = Annotated[str | None, typer.Argument(metavar="TRANSACTION_ID", help="As in the list.")]
OfQueue = Annotated[str | None, typer.Option("--queue", metavar="QUEUE", help="Only those of this queue.")]
OfGroup = Annotated[str | None, typer.Option("--group", metavar="GROUP", help="Only those of this group.")]
Since = Annotated[str | None, typer.Option("--since", metavar="TIME", help="Only those since this ISO time.")]
Until = Annotated[str | None, typer.Option("--until", metavar="TIME", help="Only those until this ISO time.")]


@app.command("list")
def list_dead_letters(
    queue: OfQueue = None,
    group: OfGroup = None,
    partition: Partition = None,
    since: Since = None,
    until: Until = None,
    limit: Annotated[int, typer.Option(min=1, help="Most dead letters to show.")] = PAGE,
    offset: Annotated[int, typer.Option(min=0, help="Dead letters to pass over first.")] = 0,
    url: Url = None,
    as_json: AsJson = False,
) -> None:
    """List dead letters (also: just `queenspark dlq`)."""
    query = {**_filter(queue, group, partition, since, until), "limit": limit, "offset": offset}
    with BrokerApi(url) as broker:
        answer = broker.get("dlq", query=query)
    if as_json:
        return print_json(answer)
    letters = records_of(answer, "messages")
    if not letters:
        return say("There are no dead letters.")
    print_table([{**letter, "shown": as_text(letter.get("data"))} for letter in letters], COLUMNS)
    return say(f"{len(letters):,} of {answer.get('total', len(letters)):,} dead letters.")


@app.command("show")
def show_dead_letter(
    partition_id: PartitionId, transaction_id: TransactionId, url: Url = None, as_json: AsJson = False
) -> None:
    """Show one message with everything that is known about it."""
    with BrokerApi(url) as broker:
        answer = broker.get("messages", partition_id, transaction_id)
    if as_json:
        return print_json(answer)
    return print_facts({**answer, "data": as_text(answer.get("data"))})


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
    """Put one dead letter back, or all that a filter matches."""
    with BrokerApi(url) as broker:
        chosen = _filter(queue, group, partition, since, until)
        letters = _choose(broker, partition_id, transaction_id, chosen)
        confirm(f"Put {_count(letters)} back?", yes or transaction_id is not None)
        for letter in letters:
            broker.post(*_path(letter), "retry", query=_group_of(letter))
    say(f"Put {_count(letters)} back.")


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
    """Delete one dead letter, or all that a filter matches."""
    with BrokerApi(url) as broker:
        chosen = _filter(queue, group, partition, since, until)
        letters = _choose(broker, partition_id, transaction_id, chosen)
        confirm(f"Delete {_count(letters)}?", yes)
        for letter in letters:
            broker.delete(*_path(letter), query=_group_of(letter))
    say(f"Deleted {_count(letters)}.")


def _filter(
    queue: str | None, group: str | None, partition: str | None, since: str | None, until: str | None
) -> Filter:
    given = {"queue": queue, "consumerGroup": group, "partition": partition, "from": since, "to": until}
    return {name: value for name, value in given.items() if value is not None}


def _choose(
    broker: BrokerApi, partition_id: str | None, transaction_id: str | None, chosen: Filter
) -> list[DeadLetter]:
    """The one dead letter that was named, or all that match the filter."""
    if partition_id is not None and transaction_id is not None:
        group = chosen.get("consumerGroup")
        return [{"partitionId": partition_id, "transactionId": transaction_id, "consumerGroup": group}]
    if partition_id is not None or not chosen:
        raise Failure("Name a dead letter by PARTITION_ID and TRANSACTION_ID, or give a filter.", Exit.USAGE)
    letters: list[DeadLetter] = []
    while True:
        page = broker.get("dlq", query={**chosen, "limit": PAGE, "offset": len(letters)})
        found = records_of(page, "messages")
        letters += found
        if len(found) < PAGE:
            break
    if not letters:
        raise Failure("There are no such dead letters.", Exit.NOTHING)
    return letters


def _path(letter: DeadLetter) -> tuple[str, str, str]:
    return "messages", str(letter["partitionId"]), str(letter["transactionId"])


def _group_of(letter: DeadLetter) -> dict[str, Any]:
    return {"consumerGroup": letter.get("consumerGroup")}


def _count(letters: list[DeadLetter]) -> str:
    return "1 dead letter" if len(letters) == 1 else f"{len(letters):,} dead letters"
