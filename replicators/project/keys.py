"""Keys for development: made once and kept in a file, so that sessions and secrets outlive a restart."""

from __future__ import annotations

import contextlib
import os
import secrets
from pathlib import Path


def development_key(path: Path) -> str:
    """The key in `path`, which is made (0600) where it is missing; several processes may ask at once."""
    path.parent.mkdir(parents=True, exist_ok=True)
    draft = path.with_name(f".{path.name}.{os.getpid()}")
    if not path.exists():
        with os.fdopen(os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "w") as file:
            file.write(secrets.token_urlsafe(48))
        with contextlib.suppress(FileExistsError):
            os.link(draft, path)
        draft.unlink()
    return path.read_text(encoding="utf-8").strip()
