"""Writes the audit trail to a file as JSON lines. It continues after the last row written, so it
may be called again and again."""

from __future__ import annotations

import fcntl
import json
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any, BinaryIO

from django.core.management.base import BaseCommand, CommandError, CommandParser
from rest_framework.renderers import JSONRenderer

from replicators.api.audit import AuditEntrySerializer
from replicators.audit_reading import Asked, entries_after, last_key

PORTION = 1_000
_TAIL_BYTES = 1 << 20


class Command(BaseCommand):
    """Each row is written once, also after an interruption. Beside the file is `<file>.last` with
    the key of the last row, so that the file may be moved away between two calls."""

    help = (
        "Appends new rows of the audit trail to a file as JSON lines; to standard output "
        "without --to."
    )

    def add_arguments(self, parser: CommandParser) -> None:
        """The file, and where to begin."""
        parser.add_argument("--to", type=Path, help="the file that rows are appended to")
        parser.add_argument(
            "--after",
            type=int,
            help="only rows with a greater id; else those after the last one written",
        )

    def handle(self, *args: Any, **options: Any) -> None:
        """Write the new rows."""
        to: Path | None = options["to"]
        after: int | None = options["after"]
        if to is None:
            for line, _ in _lines(after or 0):
                self.stdout.write(line)
            return
        try:
            written = _append(to, after)
        except OSError as err:
            raise CommandError(f"{to} can't be written: {err.strerror}.") from err
        self.stderr.write(f"{written} rows written to {to}.")


def _lines(after: int) -> Iterator[tuple[str, int]]:
    """Rows as lines, with their keys."""
    while rows := entries_after(Asked(), after, PORTION):
        for row in rows:
            yield JSONRenderer().render(AuditEntrySerializer(row).data).decode(), row.pk
        after = rows[-1].pk


def _append(to: Path, after: int | None) -> int:
    """Append the new rows. Returns how many."""
    mark = to.with_name(f"{to.name}.last")
    written = 0
    with os.fdopen(os.open(to, os.O_RDWR | os.O_CREAT, 0o600), "r+b") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError as err:
            raise CommandError(f"Another process writes to {to}.") from err
        last = _last_in(file)
        last = max(last, _marked(mark)) if after is None else after
        if last > last_key():
            raise CommandError(
                f"{to} ends with row {last}, which the trail does not have: was the database "
                "restored? Say --after."
            )
        for line, key in _lines(last):
            file.write(f"{line}\n".encode())
            written, last = written + 1, key
        file.flush()
        os.fsync(file.fileno())
        draft = mark.with_name(f"{mark.name}.new")
        draft.write_text(f"{last}\n")
        draft.replace(mark)
    return written


def _marked(mark: Path) -> int:
    try:
        return int(mark.read_text())
    except (FileNotFoundError, ValueError):
        return 0


def _last_in(file: BinaryIO) -> int:
    """The key of the last whole line. What follows that line is incomplete and is removed. The file
    is then at its end."""
    begin = max(0, file.seek(0, os.SEEK_END) - _TAIL_BYTES)
    file.seek(begin)
    tail = file.read()
    whole = tail[: tail.rfind(b"\n") + 1]
    file.seek(begin + len(whole))
    file.truncate()
    if not whole:
        return 0
    try:
        return int(json.loads(whole.splitlines()[-1])["id"])
    except (ValueError, TypeError, KeyError) as err:
        raise CommandError("The file holds something else than rows of the audit trail.") from err
