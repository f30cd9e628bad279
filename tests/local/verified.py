"""What a verification reports on its way, for tests."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

from runners.engine.verify.report import TableProgress, TableReport


@dataclass
class Heard:
    """A `Listener` that remembers."""

    stop_at: int = 1 << 60
    progressed: list[TableProgress] = field(default_factory=list)
    done: list[TableReport] = field(default_factory=list)
    act: Callable[[TableProgress], None] = lambda _: None

    def progress(self, now: TableProgress) -> None:
        self.progressed.append(now)
        self.act(now)

    def table_done(self, report: TableReport) -> None:
        self.done.append(report)

    def should_stop(self) -> bool:
        return len(self.progressed) >= self.stop_at
