"""Tokens: every algorithm, every claim, and every trick to get past them."""

import asyncio
import base64
import hmac
import json
import time
from collections.abc import Callable
from typing import Any

import httpx2
import pytest
from cryptography.hazmat.primitives.asymmetric import rsa
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat
from joserfc.jwk import OctKey, RSAKey

from queenspark.broker.access.gate import FREE_FAILURES
from queenspark.broker.access.token_keys import read_jwks, static_keys
from queenspark.broker.access.tokens import Tokens
from queenspark.broker.errors import ApiError
from queenspark.settings import Settings, SettingsError
from tests.access.conftest import As
from tests.access.issuer import KEYS, SECRET, Issuer, public, public_pem, token
from tests.broker_process import Broker
from tests.conftest import StartBroker
from tests.wire.api import Api, refused
from tests.wire.deadline import eventually

ME = "/api/v1/me"


@pytest.mark.parametrize("algorithm", ["HS256", "RS256", "ES256", "EdDSA"])
def test_a_token_identifies_the_caller(as_: As, algorithm: str) -> None:
    header = {} if algorithm == "HS256" else {"kid": KEYS[algorithm].kid}
    me = as_(token(algorithm, header=header, sub="bert", role="read-write")).read(ME)
    assert (me["name"], me["kind"], me["role"], me["scopes"]) == ("bert", "token", "read-write", None)
    assert "queue:push" in me["rights"]
    assert "queue:admin" not in me["rights"]


@pytest.mark.parametrize(
    ("claims", "role"),
    [
        ({"role": "admin"}, "admin"),
        ({"role": None, "roles": ["read-only", "read-write", "other"]}, "read-write"),
        ({"role": "read-only", "roles": ["admin"]}, "admin"),
        ({"role": "ADMIN"}, None),
        ({"role": ["admin"]}, None),
        ({"role": None, "roles": {"admin": True}}, None),
    ],
)
def test_the_strongest_role_counts(as_: As, claims: dict[str, Any], role: str | None) -> None:
    assert as_(token(**claims)).read(ME)["role"] == role


def test_scopes_of_a_token_count(as_: As) -> None:
    me = as_(token(role=None, queenspark_scopes=["queue:orders.*:push"])).read(ME)
    assert me["scopes"] == ["queue:orders.*:push"]
    assert set(me["rights"]) == {"known", "public", "queue:push", "queue:transact", "sql:run"}
    assert "queue:x" in refused(as_(token(queenspark_scopes=["queue:x"])).get(ME), 401)


def b64(value: object) -> str:
    text = value if isinstance(value, bytes) else json.dumps(value).encode()
    return base64.urlsafe_b64encode(text).rstrip(b"=").decode()


def unsigned(header: dict[str, object]) -> str:
    return f"{b64(header)}.{b64({'sub': 'eve', 'role': 'admin', 'exp': int(time.time()) + 60})}."


def confused(secret: bytes) -> str:
    """A token of HS256 whose secret is something public; joserfc refuses to make one."""
    signed, _, _ = unsigned({"alg": "HS256", "kid": "rsa"}).rpartition(".")
    return f"{signed}.{b64(hmac.digest(secret, signed.encode(), 'sha256'))}"


def short_key() -> str:
    """A public key of RSA that is too short, in PEM."""
    made = rsa.generate_private_key(65537, 1024).public_key()
    return made.public_bytes(Encoding.PEM, PublicFormat.SubjectPublicKeyInfo).decode()


FORGED: dict[str, Callable[[], str]] = {
    "expired": lambda: token(seconds=-3600),
    "without exp": lambda: token(seconds=None),
    "exp as text": lambda: token(seconds=None, exp="never"),
    "exp beyond numbers": lambda: token(seconds=None, exp=10**400),
    "not yet": lambda: token(nbf=int(time.time()) + 3600),
    "without sub": lambda: token(sub=None),
    "another secret": lambda: token(key=OctKey.import_key(b"x" * 40)),
    "another key": lambda: token("RS256", key=RSAKey.generate_key(2048), header={"kid": "rsa"}),
    "an unknown kid": lambda: token("RS256", header={"kid": "../../dev/null"}),
    "a kid of another algorithm": lambda: token("RS256", header={"kid": "ec"}),
    "the public key as secret": lambda: confused(public_pem("RS256").encode()),
    "the public key as secret, stripped": lambda: confused(public_pem("RS256").strip().encode()),
    "the secret with another hash": lambda: token("HS512"),
    "alg none": lambda: unsigned({"alg": "none"}),
    "alg None": lambda: unsigned({"alg": "None"}),
    "no alg": lambda: unsigned({}),
    "an empty signature": lambda: unsigned({"alg": "HS256"}),
    "its own key": lambda: token(
        "RS256", key=(own := RSAKey.generate_key(2048)), header={"jwk": own.as_dict(private=False)}
    ),
    "its own JWKS": lambda: token(
        "RS256", key=RSAKey.generate_key(2048), header={"jku": "http://127.0.0.1:1/"}
    ),
    "a list as kid": lambda: unsigned({"alg": "HS256", "kid": ["rsa"]}),
    "crit": lambda: unsigned({"alg": "HS256", "crit": ["exp"]}),
    "half a token": lambda: token().rsplit(".", 1)[0],
    "a changed claim": lambda: token(role="read-only").replace(".", ".e30", 1),
    "garbage": lambda: "garbage",
    "dots": lambda: "..",
}


@pytest.mark.parametrize("trick", FORGED)
def test_an_invalid_token_is_401(closed: Broker, trick: str) -> None:
    name, secret = "HS512", KEYS["HS256"]
    KEYS[name] = secret
    try:
        forged = FORGED[trick]()
    finally:
        del KEYS[name]
    # From addresses of their own, or they would have to wait.
    address = f"127.0.1.{1 + list(FORGED).index(trick)}"
    with httpx2.Client(transport=httpx2.HTTPTransport(local_address=address, verify=False)) as client:
        response = client.get(closed.url + ME, headers={"Authorization": f"Bearer {forged}"})
    assert refused(response, 401), trick
    assert response.headers["www-authenticate"].startswith("Bearer")


def test_issuer_and_audience_must_match(broker: StartBroker) -> None:
    closed = broker(
        jwt_enabled="true", jwt_secret=SECRET, jwt_issuer="us", jwt_audience="queues", jwt_clock_skew=5
    )
    with Api(closed.url) as api:

        def status(**claims: Any) -> int:
            headers = {"Authorization": f"Bearer {token(**claims)}"}
            return api.http.get(ME, headers=headers).status_code

        assert status(iss="us", aud="queues") == 200
        assert status(iss="us", aud=["others", "queues"]) == 200
        assert status(iss="them", aud="queues") == 401
        assert status(iss="us", aud="others") == 401
        assert status(aud="queues") == 401
        assert status(iss="us") == 401
        assert status(iss="us", aud="queues", seconds=-3) == 200
        assert status(iss="us", aud="queues", seconds=-30) == 401
        # A secret is for HS256 alone, and nothing else was given.
        header = {"Authorization": f"Bearer {token('RS256', iss='us', aud='queues')}"}
        assert api.http.get(ME, headers=header).status_code == 401


def test_keys_of_a_jwks_come_and_go(broker: StartBroker, issuer: Issuer) -> None:
    own = RSAKey.generate_key(2048, {"kid": "next"})
    closed = broker(jwt_enabled="true", jwt_jwks_url=issuer.url, jwt_jwks_refresh_interval=1)
    with Api(closed.url) as api:

        def status() -> int:
            headers = {"Authorization": f"Bearer {next_token}"}
            return api.http.get(ME, headers=headers).status_code

        next_token = token("RS256", key=own, header={"kid": "next"})
        assert status() == 401
        issuer.keys.append(dict(own.as_dict(private=False)))
        eventually(lambda: status() == 200)
        issuer.keys.pop()
        eventually(lambda: status() == 401)


def test_tokens_of_a_new_key_wait_for_the_read_in_flight(monkeypatch: pytest.MonkeyPatch) -> None:
    published = json.dumps({"keys": [public("RS256")]}).encode()
    reads = 0

    async def fetch(_: str, __: float) -> bytes:
        nonlocal reads
        reads += 1
        for _round in range(10):  # until both tokens wait
            await asyncio.sleep(0)
        return published

    async def run() -> None:
        tokens = Tokens(Settings(jwt_enabled=True, jwt_jwks_url="https://issuer.example/jwks.json"))
        texts = [token("RS256", header={"kid": "rsa"}, sub=name) for name in ("anna", "bert")]
        found = await asyncio.gather(*(tokens.check(text) for text in texts))
        assert [caller.name for caller, _ in found] == ["anna", "bert"]
        assert reads == 1

    monkeypatch.setattr("queenspark.broker.access.token_keys._fetch", fetch)
    asyncio.run(run())


def test_a_token_with_an_unknown_key_is_not_a_failed_login(broker: StartBroker, issuer: Issuer) -> None:
    closed = broker(jwt_enabled="true", jwt_jwks_url=issuer.url)
    with Api(closed.url) as api:
        eventually(lambda: api.http.get(ME, headers=bearer(token("RS256"))).status_code == 200)
        for number in range(FREE_FAILURES + 5):
            unknown = token("RS256", header={"kid": f"new {number}"})
            assert "unknown key" in refused(api.http.get(ME, headers=bearer(unknown)), 401)


def bearer(text: str) -> dict[str, str]:
    return {"Authorization": f"Bearer {text}"}


def test_keys_stay_in_use_while_the_jwks_is_unreachable(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    responses = [json.dumps({"keys": [public("RS256")]}).encode()]

    async def fetch(_: str, __: float) -> bytes:
        if not responses:
            raise ValueError("it responded with status 500")
        return responses.pop()

    async def run() -> None:
        tokens = Tokens(Settings(jwt_enabled=True, jwt_jwks_url="https://issuer.example/jwks.json"))
        known = token("RS256", header={"kid": "rsa"})
        await tokens.check(known)
        monkeypatch.setattr("queenspark.broker.access.token_keys._AGAIN_SECONDS", -1)
        with pytest.raises(ApiError):
            await tokens.check(token("RS256", header={"kid": "next"}))
        await tokens.check(known)

    monkeypatch.setattr("queenspark.broker.access.token_keys._fetch", fetch)
    asyncio.run(run())
    assert "status 500; those read 0 s ago stay in use" in caplog.text


def test_secrets_in_a_jwks_are_ignored() -> None:
    entries = [
        dict(KEYS["HS256"].as_dict()),
        {**public("RS256"), "use": "enc"},
        {**public("ES256"), "alg": "HS256"},
    ]
    assert read_jwks(json.dumps({"keys": entries}).encode(), "auto") == []
    (found,) = read_jwks(json.dumps({"keys": [public("RS256"), public("ES256")]}).encode(), "RS256")
    assert found.algorithm == "RS256"


@pytest.mark.parametrize(
    ("env", "problem"),
    [
        ({"QUEENSPARK_JWT_SECRET": "short"}, "QUEENSPARK_JWT_SECRET has 5 bytes, which is too short"),
        ({"QUEENSPARK_JWT_ENABLED": "true"}, "requires a key to verify tokens with"),
        ({"QUEENSPARK_JWT_ENABLED": "maybe"}, "must be true or false"),
        (
            {"JWT_ENABLED": "true", "JWT_ALGORITHM": "RS256", "JWT_SECRET": SECRET},
            "QUEENSPARK_JWT_ALGORITHM is RS256",
        ),
        (
            {"JWT_ENABLED": "true", "JWT_ALGORITHM": "HS256", "JWT_PUBLIC_KEY": "x"},
            "QUEENSPARK_JWT_ALGORITHM is HS256",
        ),
        ({"QUEENSPARK_JWT_JWKS_URL": "http://example.org/keys"}, "https://"),
        ({"QUEENSPARK_JWT_ALGORITHM": "none"}, "must be one of auto, HS256"),
    ],
)
def test_settings_that_let_others_forge_tokens_are_refused(env: dict[str, str], problem: str) -> None:
    with pytest.raises(SettingsError, match=problem):
        Settings.from_env(env)


@pytest.mark.parametrize(
    ("settings", "problem"),
    [
        ({"jwt_secret": public_pem("RS256")}, "QUEENSPARK_JWT_SECRET is a public key"),
        ({"jwt_public_key": "no key"}, "QUEENSPARK_JWT_PUBLIC_KEY is not a public key"),
        ({"jwt_public_key": short_key()}, "2048 bits"),
    ],
)
def test_invalid_token_keys_are_refused(settings: dict[str, str], problem: str) -> None:
    with pytest.raises(SettingsError, match=problem):
        static_keys(Settings(jwt_enabled=True, **settings))  # type: ignore[arg-type]


@pytest.mark.parametrize("algorithm", ["RS256", "ES256", "EdDSA"])
def test_a_public_key_is_bound_to_its_algorithm(algorithm: str) -> None:
    pem = public_pem(algorithm).replace("\n", "\\n")
    (found,) = static_keys(Settings(jwt_enabled=True, jwt_public_key=pem))
    assert found.algorithm == algorithm
    others = {"RS256": "ES256", "ES256": "EdDSA", "EdDSA": "RS256"}
    assert static_keys(Settings(jwt_enabled=True, jwt_public_key=pem, jwt_algorithm=others[algorithm])) == []


def test_the_variables_of_queen_are_understood() -> None:
    settings = Settings.from_env({"JWT_ENABLED": "true", "JWT_SECRET": SECRET, "JWT_CLOCK_SKEW": "7"})
    assert (settings.jwt_enabled, settings.jwt_secret, settings.jwt_clock_skew) == (True, SECRET, 7.0)
    assert SECRET not in repr(settings)
    assert Settings.from_env({"JWT_CLOCK_SKEW": "7", "QUEENSPARK_JWT_CLOCK_SKEW": "8"}).jwt_clock_skew == 8.0
