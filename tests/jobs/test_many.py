"""Many different jobs over some queues: each gives its own rows."""

from tests.jobs.many import SCHEMA, clicks, expected, statement, values
from tests.jobs.system import Jobs

JOBS, QUEUES, RECORDS = 60, 6, 120


def test_each_of_many_jobs_gives_its_own_rows(jobs: Jobs) -> None:
    queues = [jobs.name(f"q{number}") for number in range(QUEUES)]
    jobs.sql(";".join(SCHEMA.format(queue=queue) for queue in queues))
    names = [jobs.name(f"j{number}") for number in range(JOBS)]
    jobs.sql(";".join(statement(n, name, queues[n % QUEUES], idle="1h") for n, name in enumerate(names)))
    records = clicks(RECORDS)
    for first in range(0, RECORDS, 50):
        for queue in queues:
            jobs.api.push(queue, *(click.payload() for click in records[first : first + 50]))
        jobs.drain()
    for number in range(JOBS):
        assert values(jobs.data(f"j{number}")) == expected(number, records, is_sealed=False), number


def test_all_statements_are_different() -> None:
    assert len({statement(number, "j", "q") for number in range(1000)}) == 1000
