"""An address that keeps failing to log in waits longer each time, and no other address does."""

from queenspark.failed_logins import FailedLogins

FREE = 3


def waits(failures: FailedLogins, count: int, address: str = "10.0.0.1") -> list[int]:
    found = []
    for _ in range(count):
        failures.add(address)
        found.append(failures.wait_seconds(address))
    return found


def test_the_wait_doubles_after_the_free_failures_up_to_the_longest() -> None:
    failures = FailedLogins(FREE, longest_seconds=10, forgiven_seconds=300)
    assert waits(failures, FREE + 6) == [0] * FREE + [1, 2, 4, 8, 10, 10]
    assert failures.wait_seconds("10.0.0.2") == 0


def test_a_login_forgives() -> None:
    failures = FailedLogins(FREE, longest_seconds=10, forgiven_seconds=300)
    waits(failures, FREE + 3)
    failures.clear("10.0.0.1")
    assert waits(failures, FREE + 1) == [0] * FREE + [1]


def test_time_without_a_failure_forgives() -> None:
    failures = FailedLogins(FREE, longest_seconds=10, forgiven_seconds=0)
    assert waits(failures, FREE + 3) == [0] * (FREE + 3)


def test_thousands_of_failures_do_not_overflow() -> None:
    failures = FailedLogins(FREE, longest_seconds=10, forgiven_seconds=300)
    assert waits(failures, 2000)[-1] == 10
