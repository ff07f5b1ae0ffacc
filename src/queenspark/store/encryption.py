"""Payload encryption at rest: AES-256-GCM, bound to the message's transaction id.

A stored payload is prefixed with the id of its key and a colon, or with neither if the key has no id. This
allows key rotation: new messages are encrypted with the first key, old ones decrypted with the key they name.
"""

from __future__ import annotations

import os
from base64 import b64decode, b64encode

from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.ciphers.aead import AESGCM

from ..settings import EncryptionKeys
from .errors import Refused

_NONCE_BYTES = 12


class Cipher:
    """Encrypts with the first of several keys, and decrypts with any of them."""

    def __init__(self, keys: EncryptionKeys | bytes | None) -> None:
        pairs: EncryptionKeys = (("", keys),) if isinstance(keys, bytes) else keys or ()
        self._aeads = {id_: AESGCM(key) for id_, key in pairs}
        self._first = next(iter(self._aeads), None)

    @property
    def available(self) -> bool:
        """Whether there is a key."""
        return self._first is not None

    def encrypt(self, payload: bytes, transaction_id: str) -> bytes:
        """Return the key id followed by nonce and ciphertext in base64."""
        if self._first is None:
            raise Refused(
                "the queue is encrypted and this broker has no key:"
                " set QUEENSPARK_ENCRYPTION_KEY to 32 bytes in base64"
            )
        nonce = os.urandom(_NONCE_BYTES)
        sealed = self._aeads[self._first].encrypt(nonce, payload, transaction_id.encode())
        prefix = f"{self._first}:".encode() if self._first else b""
        return prefix + b64encode(nonce + sealed)

    def decrypt(self, stored: str, transaction_id: str) -> str:
        """Decrypt a payload; raises Refused if the key is missing or wrong."""
        if not self._aeads:
            raise Refused(
                "the message is encrypted and this broker has no key: set QUEENSPARK_ENCRYPTION_KEY"
            )
        id_, _, text = stored.rpartition(":")
        aead = self._aeads.get(id_)
        if aead is None:
            named = f"the key {id_}" if id_ else "a key without an id"
            raise Refused(
                f"the message was encrypted with {named}, which QUEENSPARK_ENCRYPTION_KEY does not have:"
                " add it after the others"
            )
        raw = b64decode(text)
        try:
            return aead.decrypt(raw[:_NONCE_BYTES], raw[_NONCE_BYTES:], transaction_id.encode()).decode()
        except InvalidTag as error:
            raise Refused(
                "the message was encrypted with another key than QUEENSPARK_ENCRYPTION_KEY"
            ) from error
