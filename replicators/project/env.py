"""Reads settings from the environment. A wrong value stops the start; the error names the variable,
the value and what is allowed."""

from __future__ import annotations

import os
import re
from pathlib import Path
from typing import Any, NoReturn

import dj_database_url
from django.core.exceptions import ImproperlyConfigured

_TRUE = frozenset({"1", "true", "yes", "on"})
_FALSE = frozenset({"0", "false", "no", "off", ""})
_SECONDS = {"": 1, "s": 1, "m": 60, "h": 3600, "d": 86400}
_BYTES = {"": 0, "k": 10, "m": 20, "g": 30, "t": 40}


def _refuse(name: str, value: str, allowed: str) -> NoReturn:
    raise ImproperlyConfigured(f"{name}={value!r} is not valid; allowed: {allowed}.")


def env_text(name: str, default: str = "", *, choices: tuple[str, ...] = ()) -> str:
    """The variable's text, or `default` where it is not set."""
    value = os.environ.get(name, default)
    if choices and value not in choices:
        _refuse(name, value, ", ".join(choices))
    return value


def env_list(name: str, default: tuple[str, ...] = ()) -> list[str]:
    """A comma-separated list."""
    raw = os.environ.get(name)
    return (
        list(default) if raw is None else [part.strip() for part in raw.split(",") if part.strip()]
    )


def env_bool(name: str, default: bool) -> bool:
    """true/false, 1/0, yes/no, on/off."""
    raw = os.environ.get(name)
    if raw is None:
        return default
    if raw.lower() in _TRUE:
        return True
    if raw.lower() in _FALSE:
        return False
    _refuse(name, raw, "true or false")


def env_int(name: str, default: int, *, minimum: int = 0, maximum: int | None = None) -> int:
    """A whole number within its limits."""
    raw = os.environ.get(name)
    if raw is None:
        return default
    allowed = f"a whole number from {minimum}" + ("" if maximum is None else f" to {maximum}")
    if not re.fullmatch(r"-?\d+", raw.strip()):
        _refuse(name, raw, allowed)
    number = int(raw)
    if number < minimum or (maximum is not None and number > maximum):
        _refuse(name, raw, allowed)
    return number


def env_seconds(name: str, default: float, *, minimum: float = 0.0) -> float:
    """A time: `30`, `1.5s`, `10m`, `24h`, `7d`."""
    raw = os.environ.get(name)
    if raw is None:
        return default
    found = re.fullmatch(r"(\d+(?:\.\d+)?)\s*([smhd]?)", raw.strip().lower())
    if found is None:
        _refuse(name, raw, "a number of seconds, or a number with s, m, h or d")
    seconds = float(found[1]) * _SECONDS[found[2]]
    if seconds < minimum:
        _refuse(name, raw, f"a time of at least {minimum:g} s")
    return seconds


def env_bytes(name: str, default: int, *, minimum: int = 0) -> int:
    """A size: `1048576`, `64M`, `20G`."""
    raw = os.environ.get(name)
    if raw is None:
        return default
    found = re.fullmatch(r"(\d+)\s*([kmgt]?)i?b?", raw.strip().lower())
    if found is None:
        _refuse(name, raw, "a number of bytes, or a number with K, M, G or T")
    size = int(found[1]) << _BYTES[found[2]]
    if size < minimum:
        _refuse(name, raw, f"at least {minimum} bytes")
    return size


def env_database(name: str, default: str) -> dict[str, Any]:
    """Django's settings of the database that a URL names. The URL holds a password, so a wrong URL
    is not shown."""
    url = env_secret(name) or default
    try:
        found = dj_database_url.parse(url, conn_max_age=60, conn_health_checks=True)
    except ValueError as err:
        raise ImproperlyConfigured(
            f"{name} is not valid; allowed: postgresql://user:password@host:5432/name, with the "
            "password's special characters"
            " percent-encoded, or sqlite:///path."
        ) from err
    return dict(found)


def env_secret(name: str, default: str = "") -> str:
    """A secret, from the variable itself or from the file that `<name>_FILE` names."""
    path = os.environ.get(f"{name}_FILE")
    if not path:
        return os.environ.get(name, default)
    try:
        return Path(path).read_text(encoding="utf-8").strip()
    except OSError as err:
        raise ImproperlyConfigured(f"{name}_FILE={path!r} can't be read: {err.strerror}.") from err
