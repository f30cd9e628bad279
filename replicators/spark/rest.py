"""Asks the program's REST interface for change files. It uses the standard library only."""

from __future__ import annotations

import json
import time
import uuid
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from http.client import HTTPException, HTTPResponse
from typing import Any
from urllib.error import HTTPError, URLError
from urllib.parse import quote, urlencode, urlsplit
from urllib.request import Request, urlopen

from replicators.spark import errors

TIMEOUT_SECONDS = 60.0
TRIES = 4
_LATER = frozenset({429, 502, 503, 504})


@dataclass(frozen=True)
class ChangeFile:
    """A change file, as REST lists it."""

    first_sequence: int
    last_sequence: int
    rows: int
    size_bytes: int
    crc32: int
    version: str
    path: str


@dataclass(frozen=True)
class TableLog:
    """How a table's log may be read, and a page of its files: see `ChangesSerializer`."""

    generation: int
    kept_after: int
    until: int
    position: int
    skipped_operations: tuple[str, ...]
    columns: tuple[Mapping[str, Any], ...]
    after: int
    schemas: Mapping[str, Mapping[str, Any]]
    files: tuple[ChangeFile, ...]


@dataclass(frozen=True)
class Rest:
    """The server, and who asks. `repr` does not show the token."""

    url: str
    token: str
    replicator: str
    schema: str
    table: str

    def __repr__(self) -> str:
        return f"Rest({self.url!r}, {self.replicator!r}, {self.schema}.{self.table})"

    @property
    def _here(self) -> str:
        return f"replicators/{quote(self.replicator)}/tables/changes/"

    def listing(self, *, after: int = 0, upto: int | None = None, limit: int = 1000) -> TableLog:
        """How the log may be read, and a page of files."""
        query: dict[str, Any] = {"after": after, "limit": limit}
        if upto is not None:
            query["upto"] = upto
        body = self._json(self._here, self._named(query))
        return TableLog(
            generation=body["generation"],
            kept_after=body["kept_after"],
            until=body["until"],
            position=body["position"],
            skipped_operations=tuple(body["skipped_operations"]),
            columns=tuple(body["columns"]),
            after=body["after"],
            schemas=body["schemas"],
            files=tuple(_file(f) for f in body["files"]),
        )

    def listings(self, *, after: int, upto: int) -> Iterator[TableLog]:
        """Every page of files with changes after `after`, up to `upto`; at least one page."""
        while True:
            page = self.listing(after=after, upto=upto)
            yield page
            if not page.files:
                return
            after = page.after

    def content(self, files: tuple[ChangeFile, ...]) -> HTTPResponse:
        """The bytes of neighbouring files, one after the other. Close the answer after reading."""
        query = {"first": files[0].first_sequence, "last": files[-1].last_sequence}
        return self._asked(f"{self._here}files/", self._named(query))

    def _named(self, query: dict[str, Any]) -> dict[str, Any]:
        return {"schema": self.schema, "table": self.table, **query}

    def _json(self, path: str, query: Mapping[str, Any]) -> Any:
        with self._asked(path, query) as answer:
            return json.load(answer)

    def _asked(self, path: str, query: Mapping[str, Any]) -> HTTPResponse:
        """The answer. A server that is busy for a moment is asked again."""
        address = f"{self.url.rstrip('/')}/api/v1/{path}?{urlencode(query)}"
        request = Request(address, headers={"Authorization": f"Bearer {self.token}"})  # noqa: S310
        for left in reversed(range(TRIES)):
            try:
                answer: HTTPResponse = urlopen(request, timeout=TIMEOUT_SECONDS)  # noqa: S310
                return answer
            except HTTPError as err:
                if err.code not in _LATER or not left:
                    raise errors.refused(err.code, _message(err)) from None
            except (URLError, HTTPException, OSError) as err:
                if not left:
                    reason = str(getattr(err, "reason", err)) or type(err).__name__
                    raise errors.unreachable(urlsplit(self.url).netloc, reason) from None
            time.sleep(2.0 ** (TRIES - 1 - left) / 4)
        raise AssertionError("the last try returns or raises")


def _file(data: Mapping[str, Any]) -> ChangeFile:
    return ChangeFile(
        first_sequence=data["first_sequence"],
        last_sequence=data["last_sequence"],
        rows=data["rows"],
        size_bytes=data["size_bytes"],
        crc32=data["crc32"],
        version=data["version"],
        path=data["path"],
    )


def _message(err: HTTPError) -> str:
    """What the server's answer says to people."""
    try:
        body = json.load(err)
    except (ValueError, OSError):
        return str(err.reason)
    fields = "; ".join(f"{k}: {' '.join(v)}" for k, v in (body.get("fields") or {}).items())
    return " ".join(t for t in (body.get("message", ""), fields) if t)


def replicator_id(url: str, token: str, name: str) -> str:
    """The id of a replicator that is named by its name or by its id."""
    try:
        return str(uuid.UUID(name))
    except ValueError:
        pass
    asking = Rest(url, token, "", "", "")
    page = 1
    while True:
        query = {"name": name, "page": page, "page_size": 500}
        body = asking._json("replicators/", query)
        for line in body["results"]:
            if line["name"] == name:
                return str(line["id"])
        if not body["next"]:
            raise errors.no_replicator(name)
        page += 1
