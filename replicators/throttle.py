"""Slows down guessing at the sign-in form: after some failures for a name from an address, or from an address at all,
every further try is refused for a while. Counts live in Django's cache."""

from __future__ import annotations

from hashlib import sha256

from django.core.cache import cache

WINDOW_SECONDS = 300
PER_NAME = 5
PER_ADDRESS = 30


def _keys(name: str, address: str) -> dict[str, int]:
    who = sha256(f"{name.strip().lower()}\0{address}".encode()).hexdigest()
    where = sha256(address.encode()).hexdigest()
    return {f"sign-in:{who}": PER_NAME, f"sign-in-from:{where}": PER_ADDRESS}


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
