"""The import of one file."""

from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

import msgspec
import typer

from queenspark.cli.exits import Exit, Failure
from queenspark.cli.files.bookmark import Bookmark, BookmarkFile
from queenspark.cli.files.lanes import Block, Interrupted, Item, Lanes
from queenspark.cli.files.progress import TransferProgress
from queenspark.cli.files.records import BadRecord, Record, field
from queenspark.cli.files.source import Source, open_source, size_of
from queenspark.client.sync.transport import Transport

BLOCK_RECORDS = 5_000
BLOCK_BYTES = 4 * 1024 * 1024
MOST_REPORTED = 20
"""Bad lines that are printed for each file; all are counted."""

INTERRUPTED = 130
"""The exit code after Ctrl-C."""

_CONTROL = dict.fromkeys((*range(32), 127))


@dataclass(frozen=True)
class Target:
    """The mapping from records to messages."""

    queue: str
    partition: str | None
    partition_by: str | None
    transaction_id_by: str | None
    strings: bool
    skip: bool

    def options(self, kind: str) -> dict[str, str | None]:
        """Options that must not change when an import resumes."""
        return {
            "--format": kind,
            "--partition": self.partition,
            "--partition-by": self.partition_by,
            "--transaction-id-by": self.transaction_id_by,
            "--strings": "yes" if self.strings else None,
        }

    def item(self, record: Record, import_id: str) -> Item:
        """A record with its partition and transactionId; ValueError when it has none."""
        partition = self.partition or "Default"
        if self.partition_by is not None:
            partition = _name(record, self.partition_by, 255)
        transaction_id = f"{import_id}-{record.offset}"
        if self.transaction_id_by is not None:
            transaction_id = _name(record, self.transaction_id_by, 512)
        record.fields = None
        return Item(record, partition, transaction_id)


def _name(record: Record, path: str, longest: int) -> str:
    value = field(record, path)
    if not 0 < len(value) <= longest or value.translate(_CONTROL) != value:
        raise ValueError(f"{path} must have 1 to {longest} characters, none of them a control character")
    return value


class Imported(msgspec.Struct):
    """The result for one file."""

    file: str
    messages: int = 0
    duplicates: int = 0
    skipped: int = 0
    note: str | None = None


class FileImport:
    """Pushes the records of one file, and keeps the bookmark."""

    def __init__(self, transport: Transport, target: Target, kind: str, done: Imported) -> None:
        self._transport = transport
        self._target = target
        self._kind = kind
        self._done = done
        self._mark = Bookmark(done.file, target.options(kind))
        self._kept: BookmarkFile | None = None
        self._reported = 0

    def run(self, kept: BookmarkFile | None = None, *, again: bool = False) -> None:
        """Import the file, from its bookmark on."""
        self._kept = kept
        name = self._done.file
        before = None if kept is None or again else kept.read()
        if before is not None:
            self._check_options(before)
            self._mark = before
            if before.finished is not None and before.finished == _stamp(name):
                self._done.note = f"{name} was already imported; use --again to import it once more."
                return
        with (
            open_source(name, self._kind, strings=self._target.strings, header=self._mark.header) as source,
            TransferProgress(name, size_of(name)) as progress,
        ):
            self._find_mark(source, progress)
            # The ids of messages must outlive a crash that comes right after the first push.
            self._keep()
            stamp = None if kept is None else _stamp(name)
            with Lanes(self._transport, self._target.queue) as lanes:
                self._push(source, lanes, progress)
            self._mark.finished = stamp
            self._keep()

    def _check_options(self, before: Bookmark) -> None:
        for option, value in self._mark.options.items():
            then = before.options.get(option)
            if then != value:
                began = f"with {option} {then}" if then else f"without {option}"
                raise Failure(
                    f"The import of {before.file} was started {began}: use the same options to continue it,"
                    " or --again to import it from the beginning.",
                    Exit.USAGE,
                )

    def _find_mark(self, source: Source, progress: TransferProgress) -> None:
        mark = self._mark
        if not mark.offset:
            return
        progress.show(0, 0, f"continuing after line {mark.number:,}")
        if not source.skip(mark.offset, mark.number, mark.digest):
            raise Failure(
                f"{mark.file} has changed: it does not begin with the {mark.number:,} lines that were"
                " imported before. Use --again to import it from the beginning."
            )

    def _push(self, source: Source, lanes: Lanes, progress: TransferProgress) -> None:
        """Push the records up to the end of the file, or to a line that is not a record."""
        stopped: BadRecord | None = None
        try:
            for block, stopped in self._blocks(source, progress):
                for done in lanes.send(block):
                    self._settle(done, progress)
                note = "waiting: the queue is full" if lanes.queue_is_full else ""
                progress.show(source.bytes_read(), self._done.messages, note)
                if stopped is not None:
                    break
            for done in lanes.flush():
                self._settle(done, progress)
        except (KeyboardInterrupt, Interrupted):
            self._interrupted(lanes, progress)
        if stopped is not None:
            raise self._stop(stopped)

    def _blocks(self, source: Source, progress: TransferProgress) -> Iterator[tuple[Block, BadRecord | None]]:
        """Blocks of records; the last one may come with the bad record that ends the import."""
        items: list[Item] = []
        size = skipped = 0
        mark = self._mark
        for found in source.records():
            bad: BadRecord | None = None
            if isinstance(found, Record):
                size += len(found.payload)
                try:
                    items.append(self._target.item(found, mark.id))
                except ValueError as error:
                    bad = BadRecord(found.line, found.offset, str(error))
            else:
                bad = found
            if bad is not None and not self._target.skip:
                # Where the bad record begins, the digest is not known: the bookmark stays before these items,
                # and the broker recognises them the next time.
                yield Block(mark.offset, mark.number, mark.digest, items, skipped), bad
                return
            if bad is not None:
                skipped += 1
                self._report(bad, progress)
            if len(items) + skipped >= BLOCK_RECORDS or size >= BLOCK_BYTES:
                mark.header = source.header
                yield Block(source.offset, source.number, source.digest(), items, skipped), None
                items, size, skipped = [], 0, 0
        mark.header = source.header
        yield Block(source.offset, source.number, source.digest(), items, skipped), None

    def _settle(self, block: Block, progress: TransferProgress) -> None:
        """A block is in the queue: count it, and move the bookmark."""
        for bad in block.refused:
            self._report(bad, progress)
        self._done.messages += len(block.items) - len(block.refused)
        self._done.duplicates += block.duplicates
        self._done.skipped += block.skipped
        if block.refused and not self._target.skip:
            raise self._stop(block.refused[0])
        self._done.skipped += len(block.refused)
        mark = self._mark
        if block.offset > mark.offset:
            mark.offset, mark.number, mark.digest = block.offset, block.number, block.digest
            self._keep()

    def _interrupted(self, lanes: Lanes, progress: TransferProgress) -> None:
        """Stop sending and count the sent records; the lanes raise the original error."""
        lanes.stop()
        with suppress(Interrupted):
            for done in lanes.flush():
                self._settle(done, progress)
        self._done.note = f"Interrupted. {self._how_to_continue()}"
        raise typer.Exit(INTERRUPTED)

    def _stop(self, bad: BadRecord) -> Failure:
        return Failure(
            f"{self._done.file}, line {bad.line:,}: {bad.reason}. {self._how_to_continue()}"
            " (Use --on-error skip to skip invalid lines.)"
        )

    def _how_to_continue(self) -> str:
        if self._kept is None:
            return (
                "An import from standard input cannot be resumed; messages already pushed stay in the queue."
            )
        return "Run the same command again to continue."

    def _report(self, bad: BadRecord, progress: TransferProgress) -> None:
        self._reported += 1
        if self._reported <= MOST_REPORTED and self._target.skip:
            progress.say(f"{self._done.file}, line {bad.line:,}: {bad.reason}; skipped.")
        elif self._reported == MOST_REPORTED + 1:
            progress.say("Further skipped lines are only counted.")

    def _keep(self) -> None:
        if self._kept is not None:
            self._kept.write(self._mark)


def _stamp(name: str) -> tuple[int, int]:
    """Changes when a file does."""
    found = Path(name).stat()
    return found.st_size, found.st_mtime_ns
