"""Payload encryption at rest: AES-256-GCM, bound to the message's transaction id."""

from __future__ import annotations

import os
from base64 import b64decode, b64encode

from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.ciphers.aead import AESGCM

from .errors import Refused

_NONCE_BYTES = 12


class Cipher:
    """Encrypts and decrypts payloads with the key from the environment, if there is one."""

    def __init__(self, key: bytes | None) -> None:
        self._aead = AESGCM(key) if key is not None else None

    @property
    def available(self) -> bool:
        """Whether there is a key."""
        return self._aead is not None

    def encrypt(self, payload: bytes, transaction_id: str) -> bytes:
        """The payload as base64 of nonce and ciphertext."""
        if self._aead is None:
            raise Refused(
                "the queue is encrypted and this broker has no key:"
                " set QUEENSPARK_ENCRYPTION_KEY to 32 bytes in base64"
            )
        nonce = os.urandom(_NONCE_BYTES)
        return b64encode(nonce + self._aead.encrypt(nonce, payload, transaction_id.encode()))

    def decrypt(self, stored: str, transaction_id: str) -> str:
        """The payload again; refused when the key is missing or is another one."""
        if self._aead is None:
            raise Refused(
                "the message is encrypted and this broker has no key: set QUEENSPARK_ENCRYPTION_KEY"
            )
        raw = b64decode(stored)
        try:
            return self._aead.decrypt(
                raw[:_NONCE_BYTES], raw[_NONCE_BYTES:], transaction_id.encode()
            ).decode()
        except InvalidTag as error:
            raise Refused(
                "the message was encrypted with another key than QUEENSPARK_ENCRYPTION_KEY"
            ) from error
