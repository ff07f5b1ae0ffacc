"""The schedule of faults, determined by a seed."""

import random
from collections.abc import Iterable
from dataclasses import dataclass

FIRST_SECONDS = 10.0
GAP_SECONDS = (3.0, 9.0)

#: The copies of each kind in the deck, and its shortest and longest duration. The deck is dealt completely
#: before it is reshuffled.
KINDS: dict[str, tuple[int, float, float]] = {
    "kill broker": (3, 0.0, 3.0),
    "stop broker": (1, 0.0, 1.0),
    "freeze broker": (1, 3.0, 9.0),
    "kill consumer": (2, 0.0, 2.0),
    "kill producer": (2, 0.0, 2.0),
    "kill pipeline": (1, 0.0, 2.0),
    "kill driver": (1, 0.0, 2.0),
    "kill JVM": (1, 0.0, 2.0),
    "kill Python workers": (2, 0.0, 0.0),
    "kill standby": (1, 0.0, 2.0),
    "freeze leader": (1, 8.0, 14.0),
    "stop leader": (1, 0.0, 1.0),
    "lose checkpoint": (1, 0.0, 1.0),
    "kill PostgreSQL": (2, 0.0, 4.0),
    "kill PostgreSQL backend": (1, 0.0, 0.0),
    "restart PostgreSQL": (1, 0.0, 1.0),
    "fill disk": (1, 3.0, 12.0),
    "cut link": (4, 0.0, 4.0),
    "delay link": (3, 3.0, 10.0),
    "half-close link": (4, 2.0, 8.0),
    "stall link": (3, 2.0, 9.0),
    "step producer's clock": (3, 0.0, 0.0),
}

#: Every run must have at least one fault of each group.
ESSENTIAL: dict[str, tuple[str, ...]] = {
    "broker": ("kill broker", "stop broker", "freeze broker"),
    "pipeline": ("kill pipeline", "kill driver", "kill JVM"),
    "PostgreSQL": ("kill PostgreSQL", "kill PostgreSQL backend", "restart PostgreSQL"),
    "link": ("cut link", "delay link", "half-close link", "stall link"),
}


@dataclass(frozen=True)
class Fault:
    """A fault: its time (in seconds since the start), kind and duration; `choice` selects the target."""

    at: float
    kind: str
    seconds: float
    choice: float

    def __str__(self) -> str:
        lasting = f" for {self.seconds:.1f} s" if self.seconds else ""
        return f"{self.at:7.1f} s  {self.kind}{lasting} ({self.choice:.3f})"


def plan(seed: int, seconds: float) -> list[Fault]:
    """Return the faults of a run."""
    chance = random.Random(seed)
    faults: list[Fault] = []
    deck: list[str] = []
    at = FIRST_SECONDS
    while at < seconds:
        if not deck:
            deck = [kind for kind, (count, _, _) in KINDS.items() for _ in range(count)]
            chance.shuffle(deck)
        kind = deck.pop()
        _, shortest, longest = KINDS[kind]
        faults.append(Fault(at, kind, chance.uniform(shortest, longest), chance.random()))
        at += chance.uniform(*GAP_SECONDS)
    return faults


def missing(kinds: Iterable[str]) -> list[str]:
    """Return the components that no fault of these kinds affects; a colon begins a detail."""
    happened = {kind.split(":")[0] for kind in kinds}
    return [what for what, essential in ESSENTIAL.items() if happened.isdisjoint(essential)]
