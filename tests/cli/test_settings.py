"""Settings come from the environment, are checked, and are documented."""

import base64
import re
from dataclasses import fields
from pathlib import Path

import pytest

from queenspark.settings import Settings, SettingsError, variable, without_userinfo

KEY = base64.b64encode(bytes(range(32))).decode()
DOCS = Path(__file__).parents[2] / "docs" / "settings.md"


def test_every_setting_has_a_default() -> None:
    settings = Settings.from_env({})
    assert (settings.host, settings.port, settings.database_url) == ("127.0.0.1", 6632, None)


def test_variables_are_read_in_the_type_of_their_setting() -> None:
    env = {
        "QUEENSPARK_PORT": "7000",
        "QUEENSPARK_LOOK_SECONDS": "0.5",
        "QUEENSPARK_DATA_DIR": "somewhere",
        "QUEENSPARK_DATABASE_URL": "postgresql://localhost/queue",
        "PORT": "1",
    }
    settings = Settings.from_env(env)
    assert settings.port == 7000
    assert settings.look_seconds == 0.5
    assert settings.data_dir == Path("somewhere")
    assert settings.database_url == "postgresql://localhost/queue"


def test_a_list_is_separated_by_commas() -> None:
    env = {"QUEENSPARK_CORS_ORIGINS": "https://example.org, http://localhost:8080,"}
    assert Settings.from_env(env).cors_origins == ("https://example.org", "http://localhost:8080")


def test_an_empty_variable_is_as_good_as_none() -> None:
    assert Settings.from_env({"QUEENSPARK_DATABASE_URL": "", "QUEENSPARK_PORT": " "}) == Settings()


def test_an_override_wins_unless_it_is_none() -> None:
    env = {"QUEENSPARK_PORT": "7000", "QUEENSPARK_HOST": "0.0.0.0"}
    settings = Settings.from_env(env, port=7001, host=None)
    assert (settings.port, settings.host) == (7001, "0.0.0.0")


def test_an_overridden_variable_is_not_even_read() -> None:
    assert Settings.from_env({"QUEENSPARK_PORT": "tcp://10.0.0.1:6632"}, port=7000).port == 7000


def test_an_override_of_no_setting_is_a_mistake_of_ours() -> None:
    with pytest.raises(TypeError, match="colour"):
        Settings.from_env({}, colour="red")


@pytest.mark.parametrize(
    ("name", "value", "fix"),
    [
        ("QUEENSPARK_PORT", "http", "must be a whole number, such as 6632"),
        ("QUEENSPARK_PORT", "0", "must be at least 1"),
        ("QUEENSPARK_PORT", "65536", "set a port from 1 to 65535"),
        ("QUEENSPARK_POOL_SIZE", "0", "must be at least 2"),
        ("QUEENSPARK_LOOK_SECONDS", "soon", "must be a number, such as 1.0"),
        ("QUEENSPARK_LOOK_SECONDS", "nan", "must be at least 0.01"),
        ("QUEENSPARK_LOG_LEVEL", "loud", "must be one of debug, info, warning, error"),
        ("QUEENSPARK_URL", "localhost:6632", "must be a URL such as http://127.0.0.1:6632"),
        ("QUEENSPARK_CORS_ORIGINS", "https://a.example,b.example", "https://example.org"),
        ("QUEENSPARK_CORS_ORIGINS", "https://a.example/", "without a path"),
        ("QUEENSPARK_CORS_ORIGINS", "https://A.example", "https://example.org"),
        ("QUEENSPARK_ENCRYPTION_KEY", "secret", "openssl rand -base64 32"),
        ("QUEENSPARK_ENCRYPTION_KEY", base64.b64encode(b"short").decode(), "openssl rand -base64 32"),
        ("QUEENSPARK_ENCRYPTION_KEY", f"a:{KEY},a:{KEY}", "give each key a unique id"),
        ("QUEENSPARK_ENCRYPTION_KEY", f"a b:{KEY}", "give each key a unique id"),
        ("QUEENSPARK_ACCESS_CONTROL", "perhaps", "must be true or false"),
        ("QUEENSPARK_TLS_KEY", "key.pem", "must be set together"),
        ("QUEENSPARK_JWT_JWKS_URL", "http://example.org/jwks.json", "use https://"),
        ("QUEENSPARK_JWT_JWKS_URL", "http://localhost.evil.example/", "use https://"),
        ("QUEENSPARK_JWT_JWKS_URL", "http://localhost@evil.example/", "use https://"),
        ("QUEENSPARK_JWT_JWKS_URL", "http://[::1", "use https://"),
    ],
)
def test_an_unusable_value_is_refused_with_the_variable_and_the_fix(name: str, value: str, fix: str) -> None:
    with pytest.raises(SettingsError) as refusal:
        Settings.from_env({name: value})
    assert name in str(refusal.value)
    assert fix in str(refusal.value)


@pytest.mark.parametrize(
    "url",
    ["https://id.example/jwks", "http://127.0.0.1:80/jwks", "http://localhost/jwks", "http://[::1]:8080/"],
)
def test_token_keys_come_over_tls_or_from_this_machine(url: str) -> None:
    assert Settings(jwt_jwks_url=url).jwt_jwks_url == url


@pytest.mark.parametrize(
    ("url", "shown"),
    [
        ("https://me:hunter2@example.org:8443/x?y=@z", "https://…@example.org:8443/x?y=@z"),
        ("https://me:hunter@2@example.org", "https://…@example.org"),
        ("https://example.org/@me", "https://example.org/@me"),
        ("local[*]", "local[*]"),
    ],
)
def test_a_url_is_shown_without_its_user_and_password(url: str, shown: str) -> None:
    assert without_userinfo(url) == shown


def test_an_error_about_a_url_does_not_show_its_password() -> None:
    for name in ("url", "jwt_jwks_url"):
        for scheme in ("ftp://", ""):
            with pytest.raises(SettingsError, match=r"@example\.org") as refusal:
                Settings.from_env({variable(name): f"{scheme}me:hunter2@example.org"})
            assert "hunter2" not in str(refusal.value)


def test_secrets_are_not_shown() -> None:
    settings = Settings(encryption_key=KEY, database_url="postgresql://me:hunter2@db/queue")
    assert KEY not in repr(settings)
    assert "hunter2" not in repr(settings)
    secret = "s3cr3t" * 10
    assert "s3cr3t" not in repr(Settings(jwt_secret=secret, api_key=secret, token=secret))


def _written(default: object) -> str:
    return str(default).lower() if isinstance(default, bool) else str(default)


def test_the_documentation_lists_every_setting_with_its_default() -> None:
    documented = dict(
        re.findall(r"^\| `(QUEENSPARK_\w+)` \| `?([^|`]*?)`? \|", DOCS.read_text(), re.MULTILINE)
    )
    expected = {
        variable(item.name): "none" if item.default in (None, ()) else _written(item.default)
        for item in fields(Settings)
    }
    assert documented == expected


def test_the_documentation_matches_the_code() -> None:
    text = DOCS.read_text()
    for item in fields(Settings):
        assert f"| {item.metadata['doc']} |" in text
