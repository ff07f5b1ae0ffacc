"""Properties of the engine, run with as many examples as the suite has time for."""

from collections.abc import Callable

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st


def run_property(
    examples: int, property_: Callable[..., None], **strategies: st.SearchStrategy[object]
) -> None:
    """Run a property as a hypothesis test with this many examples."""
    settings(
        max_examples=examples,
        deadline=None,
        suppress_health_check=[
            HealthCheck.too_slow,
            HealthCheck.data_too_large,
            HealthCheck.large_base_example,
        ],
    )(given(**strategies)(property_))()
