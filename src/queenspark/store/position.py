"""The position of a message in the log."""

from __future__ import annotations

from typing import NamedTuple


class Position(NamedTuple):
    """Transaction id (with the generation in its high bits) and message id; written `txid-id`."""

    txid: int
    id: int

    def __str__(self) -> str:
        return f"{self.txid}-{self.id}"

    @classmethod
    def parse(cls, text: str) -> Position:
        """Parse the text form; raises ValueError."""
        txid, _, id_ = text.partition("-")
        return cls(int(txid), int(id_))


BEGIN = Position(0, 0)
LARGEST = 2**63 - 1
END = Position(LARGEST, LARGEST)
