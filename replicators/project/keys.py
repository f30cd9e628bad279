"""The two keys. In production they are given from outside. For development they are made once and
kept in a file, so that sessions and secrets outlive a restart. Commands such as `migrate` need no
key; processes that serve or run refuse to start without the keys."""

from __future__ import annotations

import contextlib
import os
import secrets
from collections.abc import Mapping
from pathlib import Path

from django.core.exceptions import ImproperlyConfigured

from replicators.private import private_folder

NAMES = ("SECRET_KEY", "REPLICATOR_SECRET_KEY")
WHAT_FOR = {
    "SECRET_KEY": "signs sessions",
    "REPLICATOR_SECRET_KEY": "encrypts stored passwords; keep a copy",
}


def development_key(path: Path) -> str:
    """The key in `path`. The file is made (0600) where it is missing; several processes may do this
    at once."""
    private_folder(path.parent)
    draft = path.with_name(f".{path.name}.{os.getpid()}")
    if not path.exists():
        with os.fdopen(os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "w") as file:
            file.write(secrets.token_urlsafe(48))
        with contextlib.suppress(FileExistsError):
            os.link(draft, path)
        draft.unlink()
    return path.read_text(encoding="utf-8").strip()


def require_keys(found: Mapping[str, str], folder: Path) -> None:
    """ImproperlyConfigured, with what to do, where a key is missing. `folder` may have the keys of
    development."""
    missing = [name for name in NAMES if not found[name]]
    if not missing:
        return
    lines = [
        "This is production, since DEBUG is not true, and a key is missing. Set in the environment:"
    ]
    for name in missing:
        made = folder / name.lower()
        lines.append(f"  {name} (or {name}_FILE, a file that holds it): {WHAT_FOR[name]}.")
        if made.exists():
            lines.append(
                f"    {name}_FILE={made} goes on with the one that was made for development."
            )
    lines += [
        "A new key: python3 -c 'import secrets; print(secrets.token_urlsafe(48))'",
        "To try the program on this machine: `make demo`. To work on it: `make dev`, or "
        "DEBUG=true, which makes keys by itself.",
    ]
    raise ImproperlyConfigured("\n".join(lines))
