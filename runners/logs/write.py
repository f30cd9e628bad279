"""Writes the log of a run or a verification to rows: in batches, by a thread, with a limit of lines
and secrets masked. It never makes the engine wait."""

from __future__ import annotations

import logging
import os
import re
import shutil
import sys
import threading
import time
import traceback
from collections import deque
from collections.abc import Iterable
from contextlib import suppress
from datetime import UTC, datetime

from django.conf import settings
from django.db import DatabaseError, InterfaceError, close_old_connections, connection

from replicators.models import Replicator
from runners.logs.scrubbing import Scrubber
from runners.models import LogLine, Run

FLUSH_SECONDS = 1.0
QUEUE_LINES = 10_000
KEPT_LINES = 20_000
TEXT_CHARACTERS = 8_000
WHOLE_CHARACTERS = 200_000
RUN_LOG_DAYS = 7
RUN_LOG_BYTES = 64 << 20
OURS = frozenset({"replicator", "replicators", "runners"})
JVM_FRAMES = 3
_FRAME = ("\tat ", "\t\tat ")
_MARK = re.compile(r"replication-error<[A-Za-z0-9+/=]*>\s*")


def is_ours(record: logging.LogRecord) -> bool:
    """Whether a line is for the people who watch the run: our own line, or a library's warning."""
    return record.levelno >= logging.WARNING or record.name.partition(".")[0] in OURS


def trace_text(err: BaseException) -> str:
    """The traceback of an exception, without what tasks carry to the driver. Of consecutive JVM
    frames only the first is kept."""
    lines: list[str] = []
    hidden = 0
    text = _MARK.sub("", "".join(traceback.format_exception(err)))
    for line in text.splitlines():
        hidden = hidden + 1 if line.startswith(_FRAME) else 0
        if hidden <= JVM_FRAMES:
            lines.append(line)
        elif hidden == JVM_FRAMES + 1:
            lines.append("\t...")
    return "\n".join(lines)


class _Scrubbed(logging.Formatter):
    """Another formatter's text with secrets masked."""

    def __init__(self, inner: logging.Formatter | None, scrub: Scrubber) -> None:
        super().__init__()
        self.inner = inner
        self._scrub = scrub

    def format(self, record: logging.LogRecord) -> str:
        return self._scrub((self.inner or logging.Formatter()).format(record))


class RowHandler(logging.Handler):
    """Queues records for a thread that writes them; `owner` is the run, or the replicator where no
    run writes. When the database is locked or the queue is
    full, lines go to stderr, which the supervisor keeps in a file."""

    def __init__(
        self,
        owner: Run | Replicator,
        secrets: tuple[str, ...] = (),
        *,
        kept_lines: int = KEPT_LINES,
        level: int = logging.INFO,
    ) -> None:
        super().__init__(level)
        self.addFilter(is_ours)
        self._run_id = owner.pk if isinstance(owner, Run) else None
        self._replicator_id = owner.replicator_id if isinstance(owner, Run) else owner.pk
        self._scrub = Scrubber(secrets, characters=TEXT_CHARACTERS)
        self._scrub_whole = Scrubber(secrets, characters=WHOLE_CHARACTERS)
        self._covered: list[tuple[logging.Handler, _Scrubbed]] = []
        self._kept_lines = kept_lines
        self._lines: deque[LogLine] = deque()
        self._wake = threading.Event()
        self._is_closed = False
        self._thread = threading.Thread(target=self._work, name="log rows", daemon=True)
        self._thread.start()

    def cover(self, others: Iterable[logging.Handler]) -> None:
        """Mask secrets in the output of other handlers too, until this one is closed."""
        for other in others:
            formatter = _Scrubbed(other.formatter, self._scrub_whole)
            self._covered.append((other, formatter))
            other.setFormatter(formatter)

    def emit(self, record: logging.LogRecord) -> None:
        """Queue a record; does no I/O."""
        text = record.getMessage()
        if record.exc_info and record.exc_info[1] is not None:
            text = f"{text}\n{trace_text(record.exc_info[1])}"
        line = LogLine(
            replicator_id=self._replicator_id,
            run_id=self._run_id,
            at=datetime.fromtimestamp(record.created, UTC),
            level=record.levelname[:8],
            table=str(getattr(record, "table", "") or "")[:511],
            text=self._scrub(text.replace("\x00", "")),
        )
        if len(self._lines) < QUEUE_LINES and not self._is_closed:
            self._lines.append(line)

    def flush(self) -> None:
        """Write the queued records, in this thread."""
        batch = [self._lines.popleft() for _ in range(len(self._lines))]
        if not batch:
            return
        try:
            LogLine.objects.bulk_create(batch, 500)
            self._cap()
        except (DatabaseError, InterfaceError):
            close_old_connections()
            for line in batch:
                sys.stderr.write(f"{line.at:%F %T} {line.level} {line.table} {line.text}\n")

    def _cap(self) -> None:
        mine = LogLine.objects.filter(replicator_id=self._replicator_id)
        oldest = mine.order_by("-pk").values_list("pk", flat=True)[
            self._kept_lines : self._kept_lines + 1
        ]
        for pk in oldest:
            mine.filter(pk__lte=pk).delete()

    def _work(self) -> None:
        while not self._is_closed:
            self._wake.wait(FLUSH_SECONDS)
            self.flush()
        connection.close()

    def close(self) -> None:
        """Write the rest and end the thread."""
        if not self._is_closed:
            self._is_closed = True
            self._wake.set()
            self._thread.join(timeout=10)
            self.flush()
            for other, formatter in self._covered:
                other.setFormatter(formatter.inner)
        super().close()


def prune_run_logs() -> None:
    """Remove the output files of runs that are older than a week. A large file starts again, and
    its old content is kept once beside it: processes append to it for months."""
    limit = time.time() - RUN_LOG_DAYS * 86400
    for path in settings.RUN_LOG_DIR.glob("*.log*"):
        with suppress(FileNotFoundError):
            found = path.stat()
            if found.st_mtime < limit:
                path.unlink()
            elif path.suffix == ".log" and found.st_size > RUN_LOG_BYTES:
                shutil.copyfile(path, f"{path}.1")
                os.truncate(path, 0)
