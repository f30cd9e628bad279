"""What a connection may lead to: not the program's own files and database, no link-local address,
and only what the settings allow. This is checked before anything is opened: at a test, a look, an
assessment, and when a run starts."""

from __future__ import annotations

import ipaddress
import os
import socket
from collections.abc import Iterable, Iterator
from contextlib import suppress
from typing import Any

from django.conf import settings

from replicators.connectors.addresses import Place
from replicators.connectors.problems.errors import ReplicationError
from replicators.connectors.source import SourcePlugin
from replicators.connectors.target import TargetPlugin

Address = ipaddress.IPv4Address | ipaddress.IPv6Address
METADATA = tuple(ipaddress.ip_network(n) for n in ("169.254.0.0/16", "fe80::/10",
    "fd00:ec2::254/128"))  # fmt: skip
"""Where a machine in a cloud finds its own credentials."""
_CODE = ("replicators", "runners", "assessments", "drafts", "templates", "static", ".git", ".env")
_SECRET_FILES = ("SECRET_KEY_FILE", "REPLICATOR_SECRET_KEY_FILE", "DATABASE_URL_FILE",
    "REDIS_URL_FILE")  # fmt: skip
_BESIDE = ("", "-wal", "-shm", "-journal")


def require_reach(plugin: SourcePlugin | TargetPlugin, params: Any) -> None:
    """`config:place-refused` where the parameters lead to a place that no connection may use. It
    resolves host names."""
    for place in plugin.places(params):
        reason = _host_fault(place) if place.kind == "host" else _path_fault(place)
        if reason:
            raise ReplicationError(
                "config:place-refused", label=place.label, place=place.value, reason=reason
            )


# --- files ---------------------------------------------------------------------------------------------------------  # noqa: E501
def own_paths() -> Iterator[str]:
    """The program's own folders and files, with links resolved: its data, its keys, its code."""
    kept = [settings.VAR_DIR, settings.RUN_LOG_DIR, settings.RUNNER.log_url]
    kept += [settings.RUNNER.jars_dir, settings.RUNNER.spark_shared_dir]
    database = settings.DATABASES["default"]
    if database["ENGINE"].endswith("sqlite3"):
        kept += [f"{database['NAME']}{end}" for end in _BESIDE]
    kept += [os.environ.get(name, "") for name in _SECRET_FILES]
    kept += [settings.BASE_DIR / name for name in _CODE]
    with suppress(OSError), os.scandir(settings.VAR_DIR) as entries:
        kept += [e.path for e in entries if e.is_file()]  # known by their hard links too
    yield from (os.path.realpath(p) for p in map(str, kept) if p and "://" not in p)


def _path_fault(place: Place) -> str:
    path = os.path.realpath(place.value)
    if place.kind == "file" and os.path.lexists(path) and not _may_be_read(path):
        return "is no regular file"
    own = tuple(own_paths())
    if any(_is_inside(path, p) for p in own) or _has_other_name(path, own):
        return "belongs to this program itself"
    if place.kind == "folder" and any(_is_inside(p, path) for p in own):
        return "holds files of this program itself"
    allowed = [os.path.realpath(folder) for folder in settings.REACH_FOLDERS]
    if allowed and not any(_is_inside(path, folder) for folder in allowed):
        return "lies outside the folders that connections may use"
    return ""


def _may_be_read(path: str) -> bool:
    """False for a pipe, a device or a socket: reading one would wait, or never end."""
    return os.path.isfile(path) or os.path.isdir(path)


def _is_inside(path: str, folder: str) -> bool:
    return path == folder or path.startswith(folder.rstrip("/") + "/")


def _has_other_name(path: str, own: Iterable[str]) -> bool:
    """Whether the path, or a folder that contains it, is one of ours under another name: a hard
    link, a second mount."""
    known = {found for p in own if (found := _identity(p)) is not None}
    while path != "/":
        if _identity(path) in known:
            return True
        path = os.path.dirname(path)
    return False


def _identity(path: str) -> tuple[int, int] | None:
    with suppress(OSError, ValueError):
        found = os.stat(path)
        return found.st_dev, found.st_ino
    return None


# --- hosts ---------------------------------------------------------------------------------------------------------  # noqa: E501
def _host_fault(place: Place) -> str:
    is_socket = place.value.startswith(("/", "@"))
    name = place.value if is_socket else place.value.strip("[]").rstrip(".").casefold()
    found = () if is_socket else _resolved(name)
    if _is_own_database(place, name, found):
        return "is this program's own database"
    return _name_fault(name, found)


def _name_fault(name: str, found: tuple[Address, ...]) -> str:
    allowed = [entry.casefold() for entry in settings.REACH_HOSTS]
    networks = [network for entry in allowed if (network := _network(entry)) is not None]
    if any(_fits(name, entry) for entry in allowed):
        return ""
    if found and networks and all(any(a in n for n in networks) for a in found):
        return ""
    if allowed:
        return "is not among the hosts that connections may use"
    if any(a in network for a in found for network in METADATA):
        return "leads to a link-local address, where machines find credentials of their own"
    return ""


def _fits(name: str, entry: str) -> bool:
    """`*.example.com` fits every host below it."""
    return name.endswith(entry[1:]) if entry.startswith("*.") else name == entry.rstrip(".")


def _network(entry: str) -> ipaddress.IPv4Network | ipaddress.IPv6Network | None:
    with suppress(ValueError):
        return ipaddress.ip_network(entry, strict=False)
    return None


def _resolved(name: str) -> tuple[Address, ...]:
    """The addresses of a host, as drivers find them. None where the host is unknown; the driver
    reports that better."""
    try:
        found = {str(info[4][0]) for info in socket.getaddrinfo(name, None)}
    except (OSError, UnicodeError):
        return ()
    plain = (ipaddress.ip_address(text.partition("%")[0]) for text in found)
    return tuple(getattr(address, "ipv4_mapped", None) or address for address in plain)


def _is_own_database(place: Place, name: str, found: tuple[Address, ...]) -> bool:
    own = settings.DATABASES["default"]
    if not own["ENGINE"].endswith("postgresql") or place.database != own["NAME"]:
        return False
    host = str(own.get("HOST") or "/").casefold()
    known = () if host.startswith("/") else _resolved(host)
    is_same = host == name or bool(set(known) & set(found))
    are_here = _is_here(host, known) and _is_here(name, found)
    return (is_same or are_here) and place.port == int(own.get("PORT") or 5432)


def _is_here(name: str, found: tuple[Address, ...]) -> bool:
    """Whether the host is this machine, by a socket or by an address."""
    return name.startswith(("/", "@")) or any(address.is_loopback for address in found)
