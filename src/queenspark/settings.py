"""All settings of Queenspark, with their defaults; each can be given as an environment variable.

A field `pool_size` is read from `QUEENSPARK_POOL_SIZE`. Command-line options override the environment.
`docs/settings.md` documents the same settings.
"""

import base64
import binascii
import os
import re
from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import Any, get_type_hints

from .loopback import is_loopback_url

EncryptionKeys = tuple[tuple[str, bytes], ...]
"""Keys with their ids; the first encrypts, all decrypt."""

PREFIX = "QUEENSPARK_"
MIB = 1024 * 1024
SECRET_BYTES = 32
"""Minimum length of an HS256 secret: the size of the hash."""

_BOOLEANS = {
    "true": True,
    "1": True,
    "yes": True,
    "on": True,
    "false": False,
    "0": False,
    "no": False,
    "off": False,
}
_KEY_ID = re.compile(r"[A-Za-z0-9_-]{0,64}")
_USERINFO = re.compile(r"(?<=://)[^/?#]*@")
_ORIGIN = re.compile(r"\*|[a-z][a-z0-9+.-]*://[^/\s,A-Z]+")  # as sent by browsers


class SettingsError(ValueError):
    """A setting has an invalid value; the message names the variable and the fix."""


def _setting(
    default: Any,
    doc: str,
    *,
    at_least: float = 0,
    choices: tuple[str, ...] = (),
    secret: bool = False,
    alias: str | None = None,
) -> Any:
    """Declare one setting: its default, description, valid values, and an additional variable."""
    metadata = {"doc": doc, "at_least": at_least, "choices": choices, "alias": alias}
    return field(default=default, repr=not secret, metadata=metadata)


@dataclass(frozen=True, kw_only=True)
class Settings:
    """All settings, as plain values."""

    database_url: str | None = _setting(
        None,
        "PostgreSQL database, as a libpq URL; if unset, `queenspark up` starts its own server",
        secret=True,
    )
    host: str = _setting("127.0.0.1", "listen address of the broker")
    port: int = _setting(6632, "listen port of the broker", at_least=1)
    data_dir: Path = _setting(
        Path("queenspark-data"), "folder for the embedded PostgreSQL and the logs of `queenspark up`"
    )
    pool_size: int = _setting(16, "maximum number of database connections per broker", at_least=2)
    push_lanes: int = _setting(2, "concurrent group commits per broker", at_least=1)
    max_body_bytes: int = _setting(64 * MIB, "maximum size of a request body", at_least=1024)
    max_item_bytes: int = _setting(8 * MIB, "maximum size of a message payload", at_least=1)
    max_batch: int = _setting(
        10_000, "maximum number of items per push, messages per pop and acks per request", at_least=1
    )
    max_json_depth: int = _setting(64, "maximum nesting depth of JSON in a request", at_least=1)
    max_wait_seconds: float = _setting(60.0, "upper limit for the timeout of a long poll")
    request_seconds: float = _setting(
        30.0, "timeout for the request head, and for each further part of the body", at_least=0.1
    )
    cors_origins: tuple[str, ...] = _setting(
        (), "origins allowed to use the API from a browser, separated by commas; `*` allows all"
    )
    encryption_key: str | None = _setting(
        None,
        "key for queues with `encryptionEnabled`: 32 bytes in base64, or several with ids, newest first",
        secret=True,
    )
    access_control: bool = _setting(False, "require an API key or a token; see `docs/security.md`")
    insecure: bool = _setting(False, "allow listening on non-loopback addresses without access control")
    audit_retention_days: float = _setting(90.0, "retention of the audit log, in days")
    tls_certificate: Path | None = _setting(None, "certificate chain of the broker (PEM); enables HTTPS")
    tls_key: Path | None = _setting(None, "private key of `QUEENSPARK_TLS_CERTIFICATE` (PEM)")
    tls_client_ca: Path | None = _setting(
        None,
        "CA certificates for client certificates (PEM); requires every client to present one",
    )
    jwt_enabled: bool = _setting(
        False,
        "accept tokens (JWT) in addition to API keys; enables access control",
        alias="JWT_ENABLED",
    )
    jwt_algorithm: str = _setting(
        "auto",
        "token algorithm; `auto` uses the algorithm of each key",
        choices=("auto", "HS256", "RS256", "ES256", "EdDSA"),
        alias="JWT_ALGORITHM",
    )
    jwt_secret: str | None = _setting(
        None, "secret for HS256, at least 32 bytes", secret=True, alias="JWT_SECRET"
    )
    jwt_public_key: str | None = _setting(
        None, "public key for RS256, ES256 or EdDSA (PEM)", alias="JWT_PUBLIC_KEY"
    )
    jwt_jwks_url: str | None = _setting(
        None, "URL of the JWKS with the public keys for tokens", alias="JWT_JWKS_URL"
    )
    jwt_jwks_refresh_interval: float = _setting(
        3600.0, "refresh interval of the JWKS, in seconds", at_least=1, alias="JWT_JWKS_REFRESH_INTERVAL"
    )
    jwt_jwks_timeout_ms: float = _setting(
        5000.0, "timeout for fetching the JWKS, in milliseconds", at_least=1, alias="JWT_JWKS_TIMEOUT_MS"
    )
    jwt_issuer: str | None = _setting(None, "required `iss` of tokens", alias="JWT_ISSUER")
    jwt_audience: str | None = _setting(None, "required `aud` of tokens", alias="JWT_AUDIENCE")
    jwt_clock_skew: float = _setting(
        30.0, "tolerated clock skew between broker and issuer, in seconds", alias="JWT_CLOCK_SKEW"
    )
    jwt_roles_claim: str = _setting("role", "claim with a single role", alias="JWT_ROLES_CLAIM")
    jwt_roles_array_claim: str = _setting(
        "roles", "claim with several roles; the strongest applies", alias="JWT_ROLES_ARRAY_CLAIM"
    )
    jwt_scopes_claim: str = _setting("queenspark_scopes", "claim with an array of scopes")
    jwt_role_admin: str = _setting("admin", "name of the role `admin` in tokens", alias="JWT_ROLE_ADMIN")
    jwt_role_read_write: str = _setting(
        "read-write", "name of the role `read-write` in tokens", alias="JWT_ROLE_READ_WRITE"
    )
    jwt_role_read_only: str = _setting(
        "read-only", "name of the role `read-only` in tokens", alias="JWT_ROLE_READ_ONLY"
    )
    look_seconds: float = _setting(1.0, "interval of safe-time samples, in seconds", at_least=0.01)
    retention_interval_seconds: float = _setting(30.0, "interval of retention runs, in seconds", at_least=0.1)
    retention_batch: int = _setting(
        5000, "maximum number of messages deleted per retention statement", at_least=1
    )
    stream_hold_seconds: float = _setting(
        86400.0, "how long retention waits for streams that still need a message, in seconds"
    )
    stats_interval_seconds: float = _setting(
        10.0, "interval for counting lag and queue sizes, in seconds", at_least=0.1
    )
    spark_master: str = _setting(
        "local[*]", "Spark master: the cores of this machine, or the URL of a cluster"
    )
    spark_properties: Path | None = _setting(
        None, "Spark properties file in the format of `spark-defaults.conf`; overrides our defaults"
    )
    spark_driver_memory: str = _setting(
        "2g", "memory of the Spark driver; with a `local` master, of all of Spark"
    )
    spark_shuffle_partitions: int = _setting(
        4, "shuffle partitions; fixed for the lifetime of a checkpoint", at_least=1
    )
    spark_max_rows: int = _setting(
        800_000, "maximum number of messages per batch of the streams query", at_least=1
    )
    spark_checkpoint: str | None = _setting(
        None, "checkpoint of the streams query, as any Hadoop path; by default a folder in the data folder"
    )
    external_jobs: int = _setting(
        4,
        "maximum number of concurrent jobs with external sources or sinks; each is a Spark query",
        at_least=0,
    )
    drain_seconds: float = _setting(
        10.0, "how long a stopping broker waits for requests in flight, in seconds"
    )
    ui_host: str = _setting("127.0.0.1", "listen address of the dashboard")
    ui_port: int = _setting(6633, "listen port of the dashboard", at_least=1)
    ui_url: str = _setting(
        "http://127.0.0.1:6633", "dashboard URL that the broker redirects `/` and `/streams` to"
    )
    ui_tls_certificate: Path | None = _setting(
        None, "certificate chain of the dashboard (PEM); enables HTTPS"
    )
    ui_tls_key: Path | None = _setting(None, "private key of `QUEENSPARK_UI_TLS_CERTIFICATE` (PEM)")
    ui_session_minutes: float = _setting(60.0, "idle timeout of a dashboard login, in minutes", at_least=1)
    log_level: str = _setting("info", "log level", choices=("debug", "info", "warning", "error"))
    url: str = _setting("http://127.0.0.1:6632", "broker URL for the command line and the Python client")
    api_key: str | None = _setting(None, "API key for the command line and the Python client", secret=True)
    token: str | None = _setting(
        None, "token for the command line and the Python client, used if no API key is set", secret=True
    )
    ca: Path | None = _setting(
        None,
        "CA certificates (PEM) that the command line and the Python client verify brokers with",
    )
    client_certificate: Path | None = _setting(
        None, "certificate of the command line and the Python client (PEM)"
    )
    client_key: Path | None = _setting(None, "private key of `QUEENSPARK_CLIENT_CERTIFICATE` (PEM)")

    def __post_init__(self) -> None:
        for item in fields(self):
            value = getattr(self, item.name)
            _check_bounds(item.name, value, item.metadata)
        for name in ("port", "ui_port"):
            if getattr(self, name) > 65535:
                raise SettingsError(f"{variable(name)} is {getattr(self, name)}: set a port from 1 to 65535")
        if self.encryption_key is not None:
            decode_key(self.encryption_key)
        for origin in self.cors_origins:
            if not _ORIGIN.fullmatch(origin):
                raise SettingsError(
                    f"{variable('cors_origins')} has {origin!r}: use origins such as https://example.org"
                    " or http://localhost:8080, without a path, or *"
                )
        for prefix in ("", "ui_"):
            certificate, key = f"{prefix}tls_certificate", f"{prefix}tls_key"
            if (getattr(self, certificate) is None) != (getattr(self, key) is None):
                raise SettingsError(f"{variable(certificate)} and {variable(key)} must be set together")
        if self.tls_client_ca is not None and self.tls_certificate is None:
            raise SettingsError(
                f"{variable('tls_client_ca')} requires TLS: set {variable('tls_certificate')} and"
                f" {variable('tls_key')}"
            )
        self._check_tokens()
        for name, example in (("url", "http://127.0.0.1:6632"), ("ui_url", "http://127.0.0.1:6633")):
            url: str = getattr(self, name)
            if not url.startswith(("http://", "https://")):
                raise SettingsError(f"{variable(name)} is {_hidden(url)!r}: must be a URL such as {example}")

    def _check_tokens(self) -> None:
        """Reject token settings that allow forgery, or that cannot verify any token."""
        secret, url, algorithm = self.jwt_secret, self.jwt_jwks_url, self.jwt_algorithm
        if secret is not None and len(secret.encode()) < SECRET_BYTES:
            raise SettingsError(
                f"{variable('jwt_secret')} has {len(secret.encode())} bytes, which is too short: set at"
                f" least {SECRET_BYTES}; generate one with: openssl rand -base64 32"
            )
        if url is not None and not (
            url.startswith("https://") or (url.startswith("http://") and is_loopback_url(url))
        ):
            raise SettingsError(
                f"{variable('jwt_jwks_url')} is {_hidden(url)!r}: use https://, so that keys cannot"
                " be replaced in transit"
            )
        if not self.jwt_enabled:
            return
        if secret is None and self.jwt_public_key is None and url is None:
            raise SettingsError(
                f"{variable('jwt_enabled')} requires a key to verify tokens with: set one of"
                f" {variable('jwt_secret')}, {variable('jwt_public_key')} and {variable('jwt_jwks_url')}"
            )
        if algorithm == "HS256" and secret is None:
            raise SettingsError(f"{variable('jwt_algorithm')} is HS256: set {variable('jwt_secret')}")
        if algorithm not in ("auto", "HS256") and self.jwt_public_key is None and url is None:
            raise SettingsError(
                f"{variable('jwt_algorithm')} is {algorithm}: set {variable('jwt_public_key')} or"
                f" {variable('jwt_jwks_url')}"
            )

    @property
    def is_closed(self) -> bool:
        """Whether callers need an API key or a token."""
        return self.access_control or self.jwt_enabled

    @classmethod
    def from_env(cls, env: Mapping[str, str] = os.environ, **overrides: Any) -> "Settings":
        """Read the settings from `env`; an override that is not None wins over its variable."""
        hints = get_type_hints(cls)
        unknown = overrides.keys() - hints.keys()
        if unknown:
            raise TypeError(f"unknown setting: {', '.join(sorted(unknown))}")
        values = {name: value for name, value in overrides.items() if value is not None}
        aliases = {item.name: item.metadata["alias"] for item in fields(cls)}
        for name, hint in hints.items():
            text = env.get(variable(name), "").strip()
            if not text and aliases[name] is not None:
                text = env.get(aliases[name], "").strip()
            if name not in values and text:
                values[name] = _parse(name, text, hint)
        return cls(**values)


def without_userinfo(url: str) -> str:
    """Return a URL as it may be shown: without a user name and password. Other text is returned unchanged."""
    return _USERINFO.sub("…@", url)


def _hidden(url: str) -> str:
    """Return a URL without a user name and password, even if it lacks the scheme."""
    return without_userinfo(f"://{url}").removeprefix("://")


def variable(name: str) -> str:
    """The environment variable of a setting."""
    return PREFIX + name.upper()


def decode_key(text: str) -> EncryptionKeys:
    """Parse encryption keys, written as `id:base64` and separated by commas; one may have no id."""
    keys: dict[str, bytes] = {}
    for part in text.split(","):
        id_, _, encoded = part.strip().rpartition(":")
        try:
            key = base64.b64decode(encoded, validate=True)
        except binascii.Error:
            key = b""
        if len(key) != 32:
            raise SettingsError(
                f"{variable('encryption_key')} is not the base64 of 32 bytes; "
                "generate one with: openssl rand -base64 32"
            )
        if id_ in keys or not _KEY_ID.fullmatch(id_):
            raise SettingsError(
                f"{variable('encryption_key')} has a duplicate or invalid key id {id_!r}: give each key"
                " a unique id of letters, digits, - and _, such as 2026-05:…"
            )
        keys[id_] = key
    return tuple(keys.items())


def _parse(name: str, text: str, hint: Any) -> Any:
    if hint is int or hint is float:
        try:
            return hint(text)
        except ValueError:
            kind = "a whole number" if hint is int else "a number"
            default = next(item.default for item in fields(Settings) if item.name == name)
            raise SettingsError(f"{variable(name)} is {text!r}: must be {kind}, such as {default}") from None
    if hint is bool:
        if text.lower() not in _BOOLEANS:
            raise SettingsError(f"{variable(name)} is {text!r}: must be true or false")
        return _BOOLEANS[text.lower()]
    if hint == tuple[str, ...]:
        return tuple(part.strip() for part in text.split(",") if part.strip())
    return Path(text) if hint in (Path, Path | None) else text


def _check_bounds(name: str, value: Any, metadata: Mapping[str, Any]) -> None:
    at_least, choices = metadata["at_least"], metadata["choices"]
    # `not >=` instead of `<`, so that nan is rejected too
    if isinstance(value, int | float) and not value >= at_least:
        raise SettingsError(f"{variable(name)} is {value}: must be at least {at_least:g}")
    if choices and value not in choices:
        raise SettingsError(f"{variable(name)} is {value!r}: must be one of {', '.join(choices)}")
