"""One measured figure, compared with bare PostgreSQL."""

from dataclasses import asdict, dataclass, field
from typing import Any


@dataclass(frozen=True)
class Figure:
    """A measurement; higher is better for rates, lower for latencies."""

    name: str
    what: str
    unit: str
    measured: float
    bare: float
    details: dict[str, Any] = field(default_factory=dict)
    cores: dict[str, float] = field(default_factory=dict)

    @property
    def ratio(self) -> float:
        """The measured figure as a multiple of the bare one."""
        return self.measured / self.bare if self.bare else 0.0

    def as_json(self) -> dict[str, Any]:
        """The figure as plain values."""
        return {**asdict(self), "ratio": round(self.ratio, 3)}
