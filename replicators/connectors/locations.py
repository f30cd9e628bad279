"""Folders and object stores that people name as the place of a target: what is wrong with the text,
and where it leads. It opens nothing."""

from __future__ import annotations

import hashlib
import re
from urllib.parse import parse_qsl, urlsplit

from replicators.connectors.addresses import STORES, Place, Url, local_path, one_name_of_s3

NAMING_SERVERS = frozenset({"hdfs", "viewfs", "abfs", "abfss"})
"""Stores whose URL names a server. The environment names the servers of the other stores."""
STORES_SETTINGS = "a store's settings and keys are read from this program's environment"


def location_fault(location: str) -> str:
    """What is wrong with the text, as a sentence; empty where nothing is."""
    if location.startswith("file:"):
        is_whole = re.fullmatch(r"file:(//)?/[^/?#][^?#]*", location)
        return "" if is_whole else "must name a folder: file:///data/warehouse"
    if "://" not in location:
        return "" if location.startswith("/") else "must be an absolute path or a URL"
    try:
        url = Url.parse(location)
    except ValueError as err:
        return str(err)
    if url.scheme not in STORES:
        return f"must be a folder or begin with one of {', '.join(STORES)}"
    return f"must not have a part behind ?: {STORES_SETTINGS}" if url.query else ""


def location_places(location: str, label: str) -> tuple[Place, ...]:
    """The folder or the servers that the text leads to. `label` is the parameter that holds it."""
    path = local_path(location)
    if path:
        return (Place("folder", path, label),)
    parts = urlsplit(location)
    hosts = [
        urlsplit(v).hostname or v for n, v in parse_qsl(parts.query) if n.startswith("endpoint")
    ]
    hosts += [parts.hostname] if parts.hostname and parts.scheme in NAMING_SERVERS else []
    return tuple(Place("host", host, label) for host in hosts)


LONGEST = 100
"""Most characters of one name within a folder's name. A folder's name has two names and may have
255 characters."""
_PLAIN = frozenset("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-")


def plain(name: str) -> str:
    """`name` as a safe part of a file name. Different names give different results. Other
    characters become their code between two `~`. A name that is too long becomes its beginning and
    a digest."""
    made = "".join(c if c in _PLAIN else f"~{ord(c):x}~" for c in name)
    if made[:1] == "_":
        made = "~5f~" + made[1:]
    if len(made) <= LONGEST:
        return made
    return f"{made[:60]}~~{hashlib.sha256(name.encode()).hexdigest()[:32]}"


def folder_of(location: str) -> str:
    """The location without a trailing slash. A local location is a path."""
    text = location.removeprefix("file://") if local_path(location) else location
    return one_name_of_s3(text).rstrip("/")
