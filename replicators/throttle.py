"""Slows down guessing at the sign-in form: after some failures for a name from an address, or from an address at all,
every further try is refused for a while. Counts live in Django's cache."""

from __future__ import annotations

from hashlib import sha256

from django.conf import settings
from django.core.cache import cache
from django.http import HttpRequest

WINDOW_SECONDS = 300
PER_NAME = 5
PER_ADDRESS = 30


def _keys(name: str, address: str) -> dict[str, int]:
    who = sha256(f"{name.strip().lower()}\0{address}".encode()).hexdigest()
    where = sha256(address.encode()).hexdigest()
    return {f"sign-in:{who}": PER_NAME, f"sign-in-from:{where}": PER_ADDRESS}


def address_of(request: HttpRequest) -> str:
    """Where a request comes from. Behind a proxy every connection comes from that: there the address is the one that the proxy
    added, the last of `X-Forwarded-For`; those before it are what the browser says."""
    connected: str = request.META.get("REMOTE_ADDR", "")
    told = request.headers.get("X-Forwarded-For", "").rpartition(",")[2].strip()
    return told if told and settings.BEHIND_PROXY else connected


def is_throttled(name: str, address: str) -> bool:
    """Whether this try must not even be checked."""
    keys = _keys(name, address)
    counts = cache.get_many(keys)
    return any(counts.get(key, 0) >= limit for key, limit in keys.items())


def failed(name: str, address: str) -> None:
    """Count a failure; the window begins with the first one."""
    for key in _keys(name, address):
        if not cache.add(key, 1, WINDOW_SECONDS):
            cache.incr(key)


def succeeded(name: str, address: str) -> None:
    """Forget the failures of this name from this address."""
    cache.delete(next(iter(_keys(name, address))))
