"""A token issuer: keys of every algorithm, and a JWKS published by a small server."""

import json
import threading
import time
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

from joserfc import jwt
from joserfc.errors import SecurityWarning
from joserfc.jwk import ECKey, OctKey, OKPKey, RSAKey

SECRET = "a secret of HS256 that nobody can guess, at least 32 bytes"

KEYS: dict[str, Any] = {
    "HS256": OctKey.import_key(SECRET.encode()),
    "RS256": RSAKey.generate_key(2048, {"kid": "rsa"}),
    "ES256": ECKey.generate_key("P-256", {"kid": "ec"}),
    "EdDSA": OKPKey.generate_key("Ed25519", {"kid": "okp"}),
}


def token(
    algorithm: str = "HS256",
    /,
    key: Any = None,
    header: dict[str, Any] | None = None,
    seconds: float | None = 60,
    **claims: Any,
) -> str:
    """A token for a minute, of the role admin unless the claims say otherwise."""
    claims = {"sub": "anna", "role": "admin", **claims}
    if seconds is not None:
        claims["exp"] = int(time.time() + seconds)
    head = {"alg": algorithm, **(header or {})}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", SecurityWarning)
        return jwt.encode(head, claims, key or KEYS[algorithm], algorithms=[algorithm])


def public(algorithm: str) -> dict[str, Any]:
    """The public half of a key, as a JWKS has it."""
    return dict(KEYS[algorithm].as_dict(private=False))


def public_pem(algorithm: str) -> str:
    """The public half of a key, in PEM."""
    return str(KEYS[algorithm].as_pem(private=False).decode())


class Issuer:
    """A JWKS over HTTP; `keys` can change."""

    def __init__(self, port: int) -> None:
        self.url = f"http://127.0.0.1:{port}/jwks.json"
        self.keys: list[dict[str, Any]] = []
        self.reads = 0


@contextmanager
def publishing() -> Iterator[Issuer]:
    """An issuer that publishes its keys."""

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            issuer.reads += 1
            body = json.dumps({"keys": issuer.keys}).encode()
            self.send_response(200)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_: Any) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    issuer = Issuer(server.server_port)
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        yield issuer
    finally:
        server.shutdown()
        server.server_close()
        thread.join()
