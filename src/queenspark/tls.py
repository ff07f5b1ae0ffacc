"""TLS: the certificate of a server, read again when it was renewed."""

from __future__ import annotations

import asyncio
import logging
import ssl
from pathlib import Path

log = logging.getLogger("queenspark.tls")

LOOK_SECONDS = 1.0


class Certificate:
    """The TLS context of a server. New connections use the certificate that its files have by then."""

    def __init__(self, certificate: Path, key: Path, client_ca: Path | None = None) -> None:
        self._files = (certificate, key)
        self.context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
        self.context.minimum_version = ssl.TLSVersion.TLSv1_2
        if client_ca is not None:
            self.context.load_verify_locations(client_ca)
            self.context.verify_mode = ssl.CERT_REQUIRED
        self._stamp = self._stamps()
        self._load()

    def _load(self) -> None:
        # A certificate and a key that do not belong together must not replace those that do.
        ssl.create_default_context(ssl.Purpose.CLIENT_AUTH).load_cert_chain(*self._files)
        self.context.load_cert_chain(*self._files)

    def _stamps(self) -> list[tuple[int, int]]:
        return [((found := file.stat()).st_mtime_ns, found.st_ino) for file in self._files]

    async def keep_reading(self) -> None:
        """Read the files again whenever they have changed."""
        while True:
            await asyncio.sleep(LOOK_SECONDS)
            try:
                stamp = self._stamps()
                if stamp != self._stamp:
                    self._load()
                    self._stamp = stamp
                    log.info("the certificate was renewed")
            except OSError as error:
                log.warning("the renewed certificate cannot be used, the old one stays: %s", error)
