"""TLS: a server certificate that is reloaded when renewed."""

from __future__ import annotations

import asyncio
import logging
import ssl
from pathlib import Path

log = logging.getLogger("queenspark.tls")

CHECK_SECONDS = 1.0


class Certificate:
    """The TLS context of a server. New connections use the current certificate files."""

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
        # A mismatched certificate and key must not replace a matching pair.
        ssl.create_default_context(ssl.Purpose.CLIENT_AUTH).load_cert_chain(*self._files)
        self.context.load_cert_chain(*self._files)

    def _stamps(self) -> list[tuple[int, int]]:
        return [((found := file.stat()).st_mtime_ns, found.st_ino) for file in self._files]

    async def keep_reading(self) -> None:
        """Reload the files whenever they change."""
        while True:
            await asyncio.sleep(CHECK_SECONDS)
            try:
                stamp = self._stamps()
                if stamp != self._stamp:
                    self._load()
                    self._stamp = stamp
                    log.info("certificate reloaded")
            except OSError as error:
                log.warning("cannot use the renewed certificate, keeping the old one: %s", error)
