"""A small S3 server on loopback: it lists, heads and reads objects, and checks signatures (version 4).

Like MinIO, its listings have times with milliseconds, while those of an object have seconds only.
"""

import hashlib
import hmac
import re
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from email.utils import format_datetime
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import NamedTuple
from urllib.parse import parse_qsl, quote, unquote, urlsplit
from xml.sax.saxutils import escape

PAGE = 3
"""Objects of one page of a listing; S3 has up to 1,000."""


class Object(NamedTuple):
    """The content and the time of an object."""

    data: bytes
    modified: datetime

    @property
    def etag(self) -> str:
        """Its hash, in quotes."""
        return f'"{hashlib.md5(self.data, usedforsecurity=False).hexdigest()}"'


class S3(ThreadingHTTPServer):
    """The server, with the keys of its only user and its buckets."""

    daemon_threads = True

    def __init__(self, access_key: str = "AKIATEST", secret_key: str = "tiger/77+cat") -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.access_key = access_key
        self.secret_key = secret_key
        self.buckets: dict[str, dict[str, Object]] = {}
        #: Methods and paths of all requests.
        self.requests: list[tuple[str, str]] = []

    @property
    def address(self) -> str:
        """Host and port."""
        return f"127.0.0.1:{self.server_port}"

    def put(self, bucket: str, key: str, data: bytes | str, modified: datetime | None = None) -> None:
        """Write an object, now or at a time."""
        content = data if isinstance(data, bytes) else data.encode()
        self.buckets.setdefault(bucket, {})[key] = Object(content, modified or datetime.now(UTC))

    def url(self, path: str, *, secret: str | None = None) -> str:
        """The URL of a path, `bucket/key`, with credentials."""
        user = f"{self.access_key}:{quote(secret or self.secret_key, safe='')}"
        return f"s3://{user}@{path}?endpoint_override={self.address}&scheme=http&region=us-east-1"


@contextmanager
def s3_server() -> Iterator[S3]:
    """Run a server."""
    server = S3()
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.05})
    thread.start()
    try:
        yield server
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


class _Handler(BaseHTTPRequestHandler):
    """One request."""

    server: S3
    protocol_version = "HTTP/1.1"

    def do_HEAD(self) -> None:
        """Say whether a bucket or an object exists."""
        self._answer()

    def do_GET(self) -> None:
        """List a bucket, or read an object."""
        self._answer()

    def _answer(self) -> None:
        url = urlsplit(self.path)
        self.server.requests.append((self.command, self.path))
        bucket, _, key = unquote(url.path).removeprefix("/").partition("/")
        if not self._is_signed():
            self._fail(403, "SignatureDoesNotMatch")
        elif bucket not in self.server.buckets:
            self._fail(404, "NoSuchBucket")
        elif key:
            found = self.server.buckets[bucket].get(key)
            self._fail(404, "NoSuchKey") if found is None else self._object(found)
        else:
            self._list(bucket, dict(parse_qsl(url.query, keep_blank_values=True)))

    def _object(self, found: Object) -> None:
        headers = {
            "Last-Modified": format_datetime(found.modified, usegmt=True),
            "ETag": found.etag,
            "Accept-Ranges": "bytes",
            "Content-Type": "application/octet-stream",
        }
        wanted = re.fullmatch(r"bytes=(\d+)-(\d*)", self.headers.get("Range", ""))
        if wanted is None:
            self._send(200, found.data, headers)
            return
        first, last = int(wanted[1]), min(int(wanted[2] or len(found.data)), len(found.data) - 1)
        if first >= len(found.data):
            self._fail(416, "InvalidRange")
            return
        headers["Content-Range"] = f"bytes {first}-{last}/{len(found.data)}"
        self._send(206, found.data[first : last + 1], headers)

    def _list(self, bucket: str, query: dict[str, str]) -> None:
        prefix, delimiter = query.get("prefix", ""), query.get("delimiter", "")
        entries: dict[str, str] = {}
        for key, found in sorted(self.server.buckets[bucket].items()):
            if not key.startswith(prefix):
                continue
            end = key.find(delimiter, len(prefix)) if delimiter else -1
            if end >= 0:
                folder = key[: end + len(delimiter)]
                entries[folder] = f"<CommonPrefixes><Prefix>{escape(folder)}</Prefix></CommonPrefixes>"
                continue
            at = found.modified.strftime("%Y-%m-%dT%H:%M:%S.%f")[:-3]
            entries[key] = (
                f"<Contents><Key>{escape(key)}</Key><LastModified>{at}Z</LastModified>"
                f"<ETag>{escape(found.etag)}</ETag><Size>{len(found.data)}</Size></Contents>"
            )
        names = [name for name in entries if name > query.get("continuation-token", "")]
        page = names[: min(int(query.get("max-keys", PAGE)), PAGE)]
        is_cut = len(page) < len(names)
        more = f"<NextContinuationToken>{escape(page[-1])}</NextContinuationToken>" if is_cut else ""
        text = (
            '<?xml version="1.0" encoding="UTF-8"?><ListBucketResult>'
            f"<Name>{bucket}</Name><Prefix>{escape(prefix)}</Prefix><KeyCount>{len(page)}</KeyCount>"
            f"<MaxKeys>{PAGE}</MaxKeys><IsTruncated>{str(is_cut).lower()}</IsTruncated>{more}"
            f"{''.join(entries[name] for name in page)}</ListBucketResult>"
        )
        self._send(200, text.encode(), {"Content-Type": "application/xml"})

    def _fail(self, status: int, code: str) -> None:
        text = (
            f'<?xml version="1.0" encoding="UTF-8"?><Error><Code>{code}</Code><Message>no</Message></Error>'
        )
        self._send(status, text.encode(), {"Content-Type": "application/xml"})

    def _send(self, status: int, body: bytes, headers: dict[str, str]) -> None:
        self.send_response(status)
        for name, value in headers.items():
            self.send_header(name, value)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(body)

    def _is_signed(self) -> bool:
        """Whether the request has a valid signature of the user."""
        found = re.fullmatch(
            r"AWS4-HMAC-SHA256 Credential=([^/]+)/(\S+), SignedHeaders=(\S+), Signature=(\w+)",
            self.headers.get("Authorization", ""),
        )
        if found is None or found[1] != self.server.access_key:
            return False
        _, scope, names, signature = found.groups()
        url = urlsplit(self.path)
        pairs = sorted(parse_qsl(url.query, keep_blank_values=True))
        request = "\n".join([
            self.command,
            quote(unquote(url.path), safe="/-_.~"),
            "&".join(f"{quote(name, safe='-_.~')}={quote(value, safe='-_.~')}" for name, value in pairs),
            *(f"{name}:{' '.join(self.headers[name].split())}" for name in names.split(";")),
            "",
            names,
            self.headers["x-amz-content-sha256"],
        ])  # fmt: skip
        hashed = hashlib.sha256(request.encode()).hexdigest()
        text = f"AWS4-HMAC-SHA256\n{self.headers['x-amz-date']}\n{scope}\n{hashed}"
        key = f"AWS4{self.server.secret_key}".encode()
        for part in scope.split("/"):
            key = hmac.digest(key, part.encode(), "sha256")
        return hmac.compare_digest(hmac.new(key, text.encode(), "sha256").hexdigest(), signature)

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002 - the server's name
        """Log nothing."""
