"""Open on loopback, closed elsewhere; and the commands that make the first key."""

import os
import stat
import subprocess
import sys
import tempfile
from pathlib import Path

import httpx2
import pytest

from queenspark.broker.server import StartError, check_exposure
from queenspark.settings import Settings
from tests.broker_process import clean_environment, free_port
from tests.command import commands
from tests.conftest import StartBroker
from tests.wire.api import Api
from tests.wire.deadline import eventually


@pytest.mark.parametrize("host", ["127.0.0.1", "127.0.0.5", "::1", "localhost"])
def test_loopback_is_open(host: str) -> None:
    check_exposure(Settings(host=host))


@pytest.mark.parametrize("host", ["0.0.0.0", "::", "10.0.0.1", "example.org", "127.evil.example", ""])
def test_other_addresses_need_access_control_or_insecure(host: str) -> None:
    with pytest.raises(StartError, match="without access control"):
        check_exposure(Settings(host=host))
    check_exposure(Settings(host=host, access_control=True))
    check_exposure(Settings(host=host, insecure=True))


def test_serve_refuses_to_be_open_to_the_network(
    database: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("QUEENSPARK_DATABASE_URL", database)
    refused = commands(monkeypatch, capsys)("serve", "--host", "0.0.0.0")
    assert refused.code == 2
    assert "--insecure" in refused.err


def test_up_refuses_to_be_open_to_the_network(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Before it starts anything: the folder stays empty."""
    monkeypatch.delenv("QUEENSPARK_DATABASE_URL", raising=False)
    folder = tmp_path / "data"
    command = commands(monkeypatch, capsys)
    port = str(free_port())
    refused = command("up", "--host", "0.0.0.0", "--port", port, "--data-dir", str(folder), "--no-ui")
    assert refused.code == 2
    assert "--insecure" in refused.err
    assert not folder.exists()


def test_without_access_control_every_caller_is_anonymous_with_all_rights(shared_broker: object) -> None:
    with Api(shared_broker.url) as api:  # type: ignore[attr-defined]
        me = api.read("/api/v1/me")
        assert (me["kind"], me["role"], me["accessControl"]) == ("anonymous", None, False)
        assert "access:admin" in me["rights"]
        # A credential is harmless, and ignored.
        assert api.http.get("/api/v1/me", headers={"X-API-Key": "whatever"}).json() == me


def test_the_first_key_is_made_in_the_database(
    broker: StartBroker, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    closed = broker(access_control="true")
    command = commands(monkeypatch, capsys)
    monkeypatch.setenv("QUEENSPARK_URL", closed.url)
    denied = command("keys", "create", "root", "--role", "admin")
    assert denied.code == 1
    assert "QUEENSPARK_API_KEY" in denied.err
    assert command("keys", "create", "root", "--role", "admin", "--direct").code == 2
    monkeypatch.setenv("QUEENSPARK_DATABASE_URL", closed.database_url)
    made = command("keys", "create", "root", "--role", "admin", "--direct")
    assert made.code == 0
    key = made.out.strip()
    assert key.startswith("qsk_")
    monkeypatch.setenv("QUEENSPARK_API_KEY", key)
    assert "root" in command("me").out
    own = command("keys", "create", "shop", "--scope", "queue:a:push", "--expires", "1h", "--json").json()
    assert own["scopes"] == ["queue:a:push"]
    assert own["expiresAt"] is not None
    for listed in (command("keys", "--json").json(), command("keys", "--json", "--direct").json()):
        assert [each["name"] for each in listed["keys"]] == ["root", "shop"]
        assert key.split("_", 2)[2] not in str(listed)
    assert "queue:a:push" in command("keys").out
    assert command("keys", "revoke", own["id"], "--yes").code == 0
    second = command("keys", "create", "b", "--role", "read-only", "--json", "--direct").json()
    with Api(closed.url) as api:
        api.http.headers["X-API-Key"] = second["key"]
        api.read("/api/v1/me")
        assert command("keys", "revoke", second["id"], "--yes", "--direct").code == 0
        eventually(lambda: api.get("/api/v1/me").status_code == 401)
    assert command("keys", "revoke", "none", "--yes", "--direct").code == 1
    for wrong in (["--role", "root"], ["--scope", "all"], [], ["--role", "admin", "--expires", "soon"]):
        for direct in ([], ["--direct"]):
            refused = command("keys", "create", "x", *wrong, *direct)
            assert refused.code in (1, 2), wrong
            assert "Traceback" not in refused.err
    acts = [(act["caller"], act["action"]) for act in command("audit", "--json").json()["acts"][::-1]]
    assert ("root", "POST /api/v1/keys") in acts
    assert acts[0][1] == "keys create"
    assert "DELETE /api/v1/keys/:id" in command("audit").out


def test_the_data_folder_is_for_its_owner_only() -> None:
    with tempfile.TemporaryDirectory(prefix="queenspark-test-", ignore_cleanup_errors=True) as name:
        folder, port = Path(name) / "data", free_port()
        environment = clean_environment(data_dir=folder, port=port)
        up = [sys.executable, "-m", "queenspark", "up", "--no-pipeline"]
        process = subprocess.Popen(up, env=environment, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        try:
            eventually(lambda: _is_healthy(port), within=60)
            open_ones = [
                f"{path.relative_to(folder)} {stat.S_IMODE(path.lstat().st_mode):o}"
                for path in folder.rglob("*")
                if not path.is_symlink()
                and stat.S_IMODE(path.lstat().st_mode) & 0o077
                and not path.is_socket()
            ]
            assert open_ones == []
            allowed = 0o701 if os.geteuid() == 0 else 0o700
            assert stat.S_IMODE(folder.stat().st_mode) == allowed
        finally:
            process.terminate()
            process.wait(60)


def _is_healthy(port: int) -> bool:
    try:
        return httpx2.get(f"http://127.0.0.1:{port}/health", verify=False).is_success
    except httpx2.TransportError:
        return False
