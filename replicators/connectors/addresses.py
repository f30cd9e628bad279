"""Reads the addresses that people enter: where an address may hold a secret, and which hosts and
files it leads to. It opens nothing."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal
from urllib.parse import unquote, unquote_plus, urlsplit

MASK = "********"
STORES = ("s3", "s3a", "s3n", "gs", "gcs", "abfs", "abfss", "hdfs", "viewfs")
"""The URL schemes of the supported object stores."""
_SECRET_PART = re.compile(
    r"passw|passphrase|pwd|secret|token|credential|signature"
    r"|(?:access|account|api|private|shared|service)key"
)
_SECRET_WORDS = frozenset({"pass", "pw", "key", "sas", "sig", "auth"})
_COLON = re.compile(r":|%3a", re.IGNORECASE)
_PAIR = re.compile(r"(?<![\w.%+/-])([\w.%+-]+)\s{0,8}=\s{0,8}('[^']*'|\"[^\"]*\"|[^&;?#\s,]+)")
_HOST = re.compile(r"[\w.:%-]+", re.ASCII)
_AUTHORITY = re.compile(
    r"(?:(?P<user>[^:/@?#]*)@)?(?P<host>\[[0-9A-Fa-f:.]+\]|[\w.-]*)(?::(?P<port>\d{1,5}))?",
    re.ASCII,
)


@dataclass(frozen=True, slots=True)
class Place:
    """A place that a connection leads to. `label` is the parameter that names it. A host with
    `database` means that database at that port. A `folder` may not exist yet."""

    kind: Literal["host", "folder", "file"]
    value: str
    label: str
    port: int = 0
    database: str = ""


def host_place(address: str, label: str) -> Place:
    """The server that an address of HTTP leads to."""
    url = urlsplit(address)
    port = url.port or (443 if url.scheme == "https" else 80)
    return Place("host", url.hostname or "", label, port)


def one_name_of_s3(url: str) -> str:
    """The URL with the name for S3 that every reader knows: Hadoop's own become s3://."""
    for other in ("s3a://", "s3n://"):
        if url.startswith(other):
            return "s3://" + url[len(other) :]
    return url


def _is_secret_name(name: str) -> bool:
    for _ in range(3):  # some drivers decode what was decoded
        name = unquote_plus(name)
    plain = re.sub(r"[^a-z0-9]", "", name.lower())
    return plain in _SECRET_WORDS or _SECRET_PART.search(plain) is not None


def secret_spans(text: str) -> Iterator[tuple[int, int]]:
    """Where secrets are: after `user:` and before an `@`, as any driver may read it, and as the
    value of a name that says so."""
    begins = [m.end() for m in re.finditer("://", text)] or [0]
    ends = [*(b - 3 for b in begins[1:]), len(text)]
    for begin, end in zip(begins, ends, strict=True):
        colon = _COLON.search(text, begin, end)
        at = text.rfind("@", begin, end)
        slash = text.find("/", begin, end)
        if colon and colon.end() < at and (slash < 0 or slash > colon.start()):
            yield colon.end(), at
    for pair in _PAIR.finditer(text):
        if _is_secret_name(pair[1]):
            yield pair.span(2)


def holds_secret(text: str) -> bool:
    """Whether the text holds a secret, written plainly or with percent signs."""
    return any(True for _ in secret_spans(text))


def hidden(text: str) -> str:
    """The text, with every secret in it replaced by the mask."""
    found, done = [], 0
    for begin, end in sorted(secret_spans(text)):
        found += [text[done:begin], MASK] if begin >= done else []
        done = max(done, end)
    return "".join([*found, text[done:]])


def host_fault(text: str) -> str:
    """What is wrong with the name or address of a server. The text may name several servers; each
    one is checked."""
    if all(_HOST.fullmatch(name.strip()) for name in text.split(",")):
        return ""
    return (
        "must be a host name or an address alone; port, user and password have fields of their own"
    )


@dataclass(frozen=True, slots=True)
class Url:
    """A URL that every driver reads alike: no password, a plain host, a query of plain names.
    `path` is kept as it is written."""

    scheme: str
    user: str
    host: str
    port: int
    path: str
    query: tuple[tuple[str, str], ...]

    @classmethod
    def parse(cls, text: str) -> Url:
        """ValueError where drivers might read the text differently. Its sentence repeats nothing of
        the text."""
        scheme, mark, rest = text.partition("://")
        if not mark or not re.fullmatch(r"[A-Za-z][A-Za-z0-9+.-]*", scheme):
            raise ValueError("is not a URL")
        if re.search(r"[\s\\\x00-\x1f#]", text):
            raise ValueError("must not contain blanks, backslashes or #")
        place, _, query = rest.partition("?")
        authority, slash, path = place.partition("/")
        found = _AUTHORITY.fullmatch(authority)
        if found is None or int(found["port"] or 0) > 65535:
            raise ValueError("must name one host, with a port if need be")
        pairs = [p.partition("=") for p in query.split("&") if p]
        plain = tuple((unquote(name), unquote(value)) for name, _, value in pairs)
        host = found["host"].strip("[]")
        port = int(found["port"] or 0)
        return cls(scheme.lower(), unquote(found["user"] or ""), host, port, slash + path, plain)


def local_path(text: str) -> str:
    """The path of a local folder or file, also as a `file:` URL; empty for any other URL."""
    if text.startswith("file:"):
        return unquote(urlsplit(text).path)
    return "" if "://" in text else text
