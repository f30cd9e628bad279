"""Slows down guessing of passwords. After some failures for a name from an address, or from an
address at all, every further try is refused for a while. The counts are in the database, so that
all web processes know them."""

from __future__ import annotations

from datetime import timedelta
from hashlib import sha256

from django.conf import settings
from django.db.models import F
from django.http import HttpRequest
from django.utils import timezone

from replicators.models import Tries

WINDOW_SECONDS = 300
PER_NAME = 5
PER_ADDRESS = 30
TEXT = f"Too many tries. Wait {WINDOW_SECONDS // 60} minutes, then try again."


def _keys(name: str, address: str) -> dict[str, int]:
    who = sha256(f"{name.strip().lower()}\0{address}".encode()).hexdigest()
    where = sha256(address.encode()).hexdigest()
    return {who: PER_NAME, where: PER_ADDRESS}


def address_of(request: HttpRequest) -> str:
    """The address that a request comes from. Behind a proxy every connection comes from the proxy.
    Then the address is the one that the proxy added, the last of `X-Forwarded-For`; the browser
    controls those before it."""
    connected: str = request.META.get("REMOTE_ADDR", "")
    reported = request.headers.get("X-Forwarded-For", "").rpartition(",")[2].strip()
    return reported if reported and settings.BEHIND_PROXY else connected


def is_throttled(name: str, address: str) -> bool:
    """Whether this try must be refused without a check."""
    keys = _keys(name, address)
    rows = Tries.objects.filter(key__in=keys, ends_at__gt=timezone.now())
    return any(count >= keys[key] for key, count in rows.values_list("key", "count"))


def failed(name: str, address: str) -> None:
    """Count a failure. The first one begins the window."""
    now = timezone.now()
    Tries.objects.filter(ends_at__lte=now).delete()
    ends_at = now + timedelta(seconds=WINDOW_SECONDS)
    for key in _keys(name, address):
        _, is_first = Tries.objects.get_or_create(
            key=key, defaults={"count": 1, "ends_at": ends_at}
        )
        if not is_first:
            Tries.objects.filter(key=key).update(count=F("count") + 1)


def succeeded(name: str, address: str) -> None:
    """Forget the failures of this name from this address."""
    Tries.objects.filter(key=next(iter(_keys(name, address)))).delete()
