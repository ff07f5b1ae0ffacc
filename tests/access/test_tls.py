"""TLS: for brokers, both clients and the command line; and certificates that are renewed."""

import asyncio
import ssl
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from queenspark import AsyncQueen, Queen
from queenspark.client.errors import InvalidValue, NotAllowed, Unreachable
from tests.access.certificates import Authority, replace
from tests.access.conftest import make_key
from tests.broker_process import Broker
from tests.command import Command, commands
from tests.conftest import StartBroker
from tests.wire.deadline import eventually


class TlsBroker(Broker):
    """A broker that speaks TLS; the tests know its certificate."""

    def healthy(self) -> bool:
        self.url = self.url.replace("http:", "https:")
        return super().healthy()


@pytest.fixture(scope="module")
def authority(tmp_path_factory: pytest.TempPathFactory) -> Authority:
    return Authority(tmp_path_factory.mktemp("certificates"))


@pytest.fixture(scope="module")
def start_tls(
    module_database: str, tmp_path_factory: pytest.TempPathFactory, request: pytest.FixtureRequest
) -> Callable[..., TlsBroker]:
    def start(**settings: Any) -> TlsBroker:
        log = tmp_path_factory.mktemp("tls") / "broker.log"
        broker = TlsBroker(module_database, log, access_control="true", **settings)
        request.addfinalizer(broker.stop)
        return broker

    return start


@pytest.fixture(scope="module")
def server(authority: Authority, start_tls: Callable[..., TlsBroker]) -> TlsBroker:
    certificate, key = authority.issue("broker")
    return start_tls(tls_certificate=certificate, tls_key=key)


@pytest.fixture(scope="module")
def secret(module_database: str) -> str:
    return make_key(module_database, "client", role="admin")[1]


def test_both_clients_speak_tls(server: TlsBroker, authority: Authority, secret: str, queue: str) -> None:
    with Queen(server.url, api_key=secret, ca=authority.file) as queen:
        queen.queue(queue).push({"n": 1})

    async def push() -> None:
        async with AsyncQueen(server.url, token=lambda: secret, ca=authority.file) as queen:
            await queen.queue(queue).push({"n": 2})

    asyncio.run(push())


def test_a_broker_with_a_certificate_of_another_ca_is_rejected(
    server: TlsBroker, secret: str, tmp_path: Path
) -> None:
    other = Authority(tmp_path)
    for ca in (other.file, None):
        with Queen(server.url, api_key=secret, ca=ca, retries=0) as queen, pytest.raises(Unreachable):
            queen.queue("q").push(1)


def test_the_environment_identifies_the_client(
    server: TlsBroker, authority: Authority, secret: str, queue: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("QUEENSPARK_CA", str(authority.file))
    with Queen(server.url) as queen, pytest.raises(NotAllowed) as refusal:
        queen.queue(queue).push(1)
    assert refusal.value.status == 401
    monkeypatch.setenv("QUEENSPARK_TOKEN", secret)
    with Queen(server.url) as queen:
        queen.queue(queue).push(1)
    monkeypatch.setenv("QUEENSPARK_API_KEY", "qsk_no_key")
    with Queen(server.url) as queen, pytest.raises(NotAllowed):
        queen.queue(queue).push(1)


def test_invalid_arguments_are_refused_before_anything_is_sent(tmp_path: Path) -> None:
    with pytest.raises(InvalidValue, match="pass only one of them"):
        Queen(api_key="a", token="b")
    with pytest.raises(InvalidValue, match="cannot read certificates from"):
        Queen("https://127.0.0.1:1", ca=tmp_path / "none.pem")
    with Queen(api_key="a\nb", retries=0) as queen, pytest.raises(InvalidValue, match="copy it again"):
        queen.queue("q").push(1)


def test_the_command_line_speaks_tls(
    server: TlsBroker,
    authority: Authority,
    secret: str,
    queue: str,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    command: Command = commands(monkeypatch, capsys)
    monkeypatch.setenv("QUEENSPARK_URL", server.url)
    monkeypatch.setenv("QUEENSPARK_CA", "")
    denied = command("--ca", str(authority.file), "push", queue, "1")
    assert denied.code == 1
    assert "QUEENSPARK_API_KEY" in denied.err
    monkeypatch.setenv("QUEENSPARK_API_KEY", secret)
    assert command("--ca", str(authority.file), "push", queue, "1").code == 0
    assert command("--ca", str(authority.file), "me", "--json").json()["name"] == "client"
    monkeypatch.setenv("QUEENSPARK_CA", "")
    assert command("push", queue, "1").code == 4
    assert "Cannot read certificates" in command("--ca", "no/such/file", "push", queue, "1").err


def test_a_renewed_certificate_is_used_without_a_restart(
    server: TlsBroker, authority: Authority, tmp_path: Path
) -> None:
    used, key = (
        Path(server.environment["QUEENSPARK_TLS_CERTIFICATE"]),
        Path(server.environment["QUEENSPARK_TLS_KEY"]),
    )

    def shown() -> str:
        return ssl.get_server_certificate(("127.0.0.1", server.port)).strip()

    assert shown() == used.read_text().strip()
    certificate, own_key = authority.issue("renewed")
    # The first of the two files alone does not fit the other one, and is not used.
    replace(certificate, used)
    eventually(lambda: "cannot use the renewed certificate" in server.log())
    assert shown() != used.read_text().strip()
    replace(own_key, key)
    eventually(lambda: shown() == used.read_text().strip())


class CarefulBroker(TlsBroker):
    """A broker that requires certificates of its clients."""

    def healthy(self) -> bool:
        self.url = f"https://127.0.0.1:{self.port}"
        return "listening on https" in self.log()


@pytest.fixture(scope="module")
def careful(authority: Authority, module_database: str) -> Iterator[CarefulBroker]:
    certificate, key = authority.issue("careful")
    broker = CarefulBroker(
        module_database,
        certificate.with_suffix(".log"),
        tls_certificate=certificate,
        tls_key=key,
        tls_client_ca=authority.file,
        access_control="true",
    )
    yield broker
    broker.stop()


def test_both_clients_present_a_certificate(
    careful: CarefulBroker, authority: Authority, secret: str, queue: str
) -> None:
    identity: dict[str, Any] = {"api_key": secret, "ca": authority.file}
    own = authority.issue("own")
    with Queen(careful.url, **identity, certificate=own) as queen:
        queen.queue(queue).push(1)
    with Queen(careful.url, **identity, retries=0) as queen, pytest.raises(Unreachable):
        queen.queue(queue).push(1)

    async def push(**more: Any) -> None:
        async with AsyncQueen(careful.url, **identity, retries=0, **more) as queen:
            await queen.queue(queue).push(2)

    asyncio.run(push(certificate=own))
    with pytest.raises(Unreachable):
        asyncio.run(push())


def test_the_environment_has_a_certificate_for_clients_and_commands(
    careful: CarefulBroker,
    authority: Authority,
    secret: str,
    queue: str,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    command: Command = commands(monkeypatch, capsys)
    certificate, key = authority.issue("environment")
    monkeypatch.setenv("QUEENSPARK_URL", careful.url)
    monkeypatch.setenv("QUEENSPARK_CA", str(authority.file))
    monkeypatch.setenv("QUEENSPARK_API_KEY", secret)
    assert command("push", queue, "1").code == 4
    monkeypatch.setenv("QUEENSPARK_CLIENT_CERTIFICATE", str(certificate))
    monkeypatch.setenv("QUEENSPARK_CLIENT_KEY", str(key))
    assert command("push", queue, "1").code == 0
    with Queen(careful.url) as queen:
        queen.queue(queue).push(2)
    # One file may have both.
    both = certificate.with_name("both.pem")
    both.write_text(certificate.read_text() + key.read_text())
    monkeypatch.setenv("QUEENSPARK_CLIENT_CERTIFICATE", str(both))
    monkeypatch.delenv("QUEENSPARK_CLIENT_KEY")
    assert command("push", queue, "1").code == 0


def test_an_unusable_certificate_is_reported_in_one_sentence(broker: StartBroker, tmp_path: Path) -> None:
    wrong = tmp_path / "wrong.pem"
    wrong.write_text("no certificate")
    with pytest.raises(RuntimeError, match=r"the certificate .* cannot be used"):
        broker(tls_certificate=wrong, tls_key=wrong)
