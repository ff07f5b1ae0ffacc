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
_LOOPBACK_URLS = ("http://127.0.0.1", "http://localhost", "http://[::1]")
_KEY_ID = re.compile(r"[A-Za-z0-9_-]{0,64}")
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
        "PostgreSQL to use, as a libpq URL; `queenspark up` starts its own when there is none",
        secret=True,
    )
    host: str = _setting("127.0.0.1", "address that the broker listens on")
    port: int = _setting(6632, "port that the broker listens on", at_least=1)
    data_dir: Path = _setting(
        Path("queenspark-data"), "folder of the embedded PostgreSQL and of the logs of `queenspark up`"
    )
    pool_size: int = _setting(16, "database connections of one broker", at_least=2)
    push_lanes: int = _setting(2, "gathered inserts that one broker runs at a time", at_least=1)
    max_body_bytes: int = _setting(64 * MIB, "largest request body", at_least=1024)
    max_item_bytes: int = _setting(8 * MIB, "largest payload of one message", at_least=1)
    max_batch: int = _setting(
        10_000, "most items of one push, messages of one pop and acknowledgments of one call", at_least=1
    )
    max_json_depth: int = _setting(64, "deepest nesting of JSON in a request", at_least=1)
    max_wait_seconds: float = _setting(60.0, "longest wait of a long poll, whatever the client asks for")
    request_seconds: float = _setting(
        30.0, "longest wait for the head of a request, and for the next part of its body", at_least=0.1
    )
    cors_origins: tuple[str, ...] = _setting(
        (), "origins whose pages may use the API in a browser, separated by commas; `*` allows every origin"
    )
    encryption_key: str | None = _setting(
        None,
        "key for queues with `encryptionEnabled`: 32 bytes in base64; or several with ids, the newest first",
        secret=True,
    )
    access_control: bool = _setting(
        False, "whether callers need an API key or a token; see `docs/security.md`"
    )
    insecure: bool = _setting(
        False, "whether to listen on other addresses than loopback without access control, all the same"
    )
    audit_retention_days: float = _setting(90.0, "how long the audit log is kept")
    tls_certificate: Path | None = _setting(
        None, "certificate of the broker with its chain, in PEM; with it the broker speaks HTTPS"
    )
    tls_key: Path | None = _setting(None, "private key of `QUEENSPARK_TLS_CERTIFICATE`, in PEM")
    tls_client_ca: Path | None = _setting(
        None,
        "certificates of those whose client certificates are accepted, in PEM; every client needs one then",
    )
    jwt_enabled: bool = _setting(
        False,
        "whether tokens (JWT) are accepted beside API keys; switches access control on",
        alias="JWT_ENABLED",
    )
    jwt_algorithm: str = _setting(
        "auto",
        "algorithm of tokens; `auto` is that of each key",
        choices=("auto", "HS256", "RS256", "ES256", "EdDSA"),
        alias="JWT_ALGORITHM",
    )
    jwt_secret: str | None = _setting(
        None, "secret of HS256, at least 32 bytes", secret=True, alias="JWT_SECRET"
    )
    jwt_public_key: str | None = _setting(
        None, "public key of RS256, ES256 or EdDSA, in PEM", alias="JWT_PUBLIC_KEY"
    )
    jwt_jwks_url: str | None = _setting(
        None, "where the public keys of tokens are published as a JWKS", alias="JWT_JWKS_URL"
    )
    jwt_jwks_refresh_interval: float = _setting(
        3600.0, "seconds between two reads of the JWKS", at_least=1, alias="JWT_JWKS_REFRESH_INTERVAL"
    )
    jwt_jwks_timeout_ms: float = _setting(
        5000.0, "milliseconds that a read of the JWKS may take", at_least=1, alias="JWT_JWKS_TIMEOUT_MS"
    )
    jwt_issuer: str | None = _setting(None, "`iss` that tokens must have", alias="JWT_ISSUER")
    jwt_audience: str | None = _setting(None, "`aud` that tokens must have", alias="JWT_AUDIENCE")
    jwt_clock_skew: float = _setting(
        30.0, "seconds by which the clock of the issuer may differ", alias="JWT_CLOCK_SKEW"
    )
    jwt_roles_claim: str = _setting("role", "claim with one role", alias="JWT_ROLES_CLAIM")
    jwt_roles_array_claim: str = _setting(
        "roles", "claim with several roles; the strongest counts", alias="JWT_ROLES_ARRAY_CLAIM"
    )
    jwt_scopes_claim: str = _setting("queenspark_scopes", "claim with scopes, as an array")
    jwt_role_admin: str = _setting("admin", "name of the role `admin` in tokens", alias="JWT_ROLE_ADMIN")
    jwt_role_read_write: str = _setting(
        "read-write", "name of the role `read-write` in tokens", alias="JWT_ROLE_READ_WRITE"
    )
    jwt_role_read_only: str = _setting(
        "read-only", "name of the role `read-only` in tokens", alias="JWT_ROLE_READ_ONLY"
    )
    look_seconds: float = _setting(
        1.0, "time between two looks, from which safe time is known", at_least=0.01
    )
    retention_interval_seconds: float = _setting(30.0, "time between two runs of retention", at_least=0.1)
    retention_batch: int = _setting(5000, "most messages that one statement of retention deletes", at_least=1)
    stream_hold_seconds: float = _setting(
        86400.0, "how much longer than its time retention keeps a message that a stream still needs"
    )
    stats_interval_seconds: float = _setting(
        10.0, "time between two rounds of counting lag and queue sizes", at_least=0.1
    )
    spark_master: str = _setting(
        "local[*]", "where Spark runs: on this machine's cores, or the URL of a cluster"
    )
    spark_properties: Path | None = _setting(
        None, "file with properties of Spark, in the form of `spark-defaults.conf`; they win over ours"
    )
    spark_driver_memory: str = _setting("2g", "memory of Spark's driver, which with `local` is all of Spark")
    spark_shuffle_partitions: int = _setting(
        4, "parts of a shuffle; a streaming query keeps the number that it began with", at_least=1
    )
    spark_max_rows: int = _setting(
        800_000, "most messages that the streams query reads in one batch", at_least=1
    )
    spark_checkpoint: str | None = _setting(
        None, "where the streams query keeps its state: any path of Hadoop; else a folder of the data folder"
    )
    external_jobs: int = _setting(
        4,
        "most jobs over external sources and sinks at a time; each has a Spark query of its own",
        at_least=0,
    )
    drain_seconds: float = _setting(10.0, "time that a stopping broker gives to requests in flight")
    ui_host: str = _setting("127.0.0.1", "address that the dashboard listens on")
    ui_port: int = _setting(6633, "port that the dashboard listens on", at_least=1)
    ui_url: str = _setting(
        "http://127.0.0.1:6633", "dashboard that the broker sends browsers to from `/` and `/streams`"
    )
    ui_tls_certificate: Path | None = _setting(
        None, "certificate of the dashboard with its chain, in PEM; with it the dashboard speaks HTTPS"
    )
    ui_tls_key: Path | None = _setting(None, "private key of `QUEENSPARK_UI_TLS_CERTIFICATE`, in PEM")
    ui_session_minutes: float = _setting(
        60.0, "how long a log-in of the dashboard lasts while no page of it is looked at", at_least=1
    )
    log_level: str = _setting("info", "how much is logged", choices=("debug", "info", "warning", "error"))
    url: str = _setting("http://127.0.0.1:6632", "broker that the commands of the command line talk to")
    api_key: str | None = _setting(None, "API key of the command line and of the Python client", secret=True)
    token: str | None = _setting(
        None, "token of the command line and of the Python client, where there is no API key", secret=True
    )
    ca: Path | None = _setting(
        None,
        "certificates that the command line and the Python client check a broker with TLS against, in PEM",
    )
    client_certificate: Path | None = _setting(
        None, "certificate of the command line and of the Python client, in PEM"
    )
    client_key: Path | None = _setting(None, "private key of `QUEENSPARK_CLIENT_CERTIFICATE`, in PEM")

    def __post_init__(self) -> None:
        for item in fields(self):
            value = getattr(self, item.name)
            _check_bounds(item.name, value, item.metadata)
        for name in ("port", "ui_port"):
            if getattr(self, name) > 65535:
                raise SettingsError(f"{variable(name)} is {getattr(self, name)}: give a port from 1 to 65535")
        if self.encryption_key is not None:
            decode_key(self.encryption_key)
        for origin in self.cors_origins:
            if not _ORIGIN.fullmatch(origin):
                raise SettingsError(
                    f"{variable('cors_origins')} has {origin!r}: give origins such as https://example.org"
                    " or http://localhost:8080, without a path, or *"
                )
        for prefix in ("", "ui_"):
            certificate, key = f"{prefix}tls_certificate", f"{prefix}tls_key"
            if (getattr(self, certificate) is None) != (getattr(self, key) is None):
                raise SettingsError(f"{variable(certificate)} and {variable(key)} belong together: give both")
        if self.tls_client_ca is not None and self.tls_certificate is None:
            raise SettingsError(
                f"{variable('tls_client_ca')} needs TLS: give {variable('tls_certificate')} and"
                f" {variable('tls_key')}"
            )
        self._check_tokens()
        for name, example in (("url", "http://127.0.0.1:6632"), ("ui_url", "http://127.0.0.1:6633")):
            if not getattr(self, name).startswith(("http://", "https://")):
                raise SettingsError(
                    f"{variable(name)} is {getattr(self, name)!r}: give a URL such as {example}"
                )

    def _check_tokens(self) -> None:
        """Reject token settings that allow forgery, or that cannot verify any token."""
        secret, url, algorithm = self.jwt_secret, self.jwt_jwks_url, self.jwt_algorithm
        if secret is not None and len(secret.encode()) < SECRET_BYTES:
            raise SettingsError(
                f"{variable('jwt_secret')} has {len(secret.encode())} bytes, which can be guessed: give at"
                f" least {SECRET_BYTES}; make one with: openssl rand -base64 32"
            )
        if url is not None and not url.startswith(("https://", *_LOOPBACK_URLS)):
            raise SettingsError(
                f"{variable('jwt_jwks_url')} is {url!r}: give a URL with https://, so that nobody can put in"
                " keys of their own on the way"
            )
        if not self.jwt_enabled:
            return
        if secret is None and self.jwt_public_key is None and url is None:
            raise SettingsError(
                f"{variable('jwt_enabled')} needs a key that tokens are checked with: give one of"
                f" {variable('jwt_secret')}, {variable('jwt_public_key')} and {variable('jwt_jwks_url')}"
            )
        if algorithm == "HS256" and secret is None:
            raise SettingsError(f"{variable('jwt_algorithm')} is HS256: give {variable('jwt_secret')}")
        if algorithm not in ("auto", "HS256") and self.jwt_public_key is None and url is None:
            raise SettingsError(
                f"{variable('jwt_algorithm')} is {algorithm}: give {variable('jwt_public_key')} or"
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
            raise TypeError(f"no such setting: {', '.join(sorted(unknown))}")
        values = {name: value for name, value in overrides.items() if value is not None}
        aliases = {item.name: item.metadata["alias"] for item in fields(cls)}
        for name, hint in hints.items():
            text = env.get(variable(name), "").strip()
            if not text and aliases[name] is not None:
                text = env.get(aliases[name], "").strip()
            if name not in values and text:
                values[name] = _parse(name, text, hint)
        return cls(**values)


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
                "make one with: openssl rand -base64 32"
            )
        if id_ in keys or not _KEY_ID.fullmatch(id_):
            raise SettingsError(
                f"{variable('encryption_key')} has the id {id_!r} twice, or it is not of letters, digits, -"
                " and _: give each key an id of its own, such as 2026-05:…"
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
            raise SettingsError(f"{variable(name)} is {text!r}: give {kind}, such as {default}") from None
    if hint is bool:
        if text.lower() not in _BOOLEANS:
            raise SettingsError(f"{variable(name)} is {text!r}: give true or false")
        return _BOOLEANS[text.lower()]
    if hint == tuple[str, ...]:
        return tuple(part.strip() for part in text.split(",") if part.strip())
    return Path(text) if hint in (Path, Path | None) else text


def _check_bounds(name: str, value: Any, metadata: Mapping[str, Any]) -> None:
    at_least, choices = metadata["at_least"], metadata["choices"]
    # `not >=` instead of `<`, so that nan is rejected too
    if isinstance(value, int | float) and not value >= at_least:
        raise SettingsError(f"{variable(name)} is {value}: give at least {at_least:g}")
    if choices and value not in choices:
        raise SettingsError(f"{variable(name)} is {value!r}: give one of {', '.join(choices)}")
