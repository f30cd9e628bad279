"""Work that is spread over the workers of a run: a function, mapped over items. Plugins and engine
know only this protocol."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Protocol, TypeVar

from replicators.connectors.spark import Session

T = TypeVar("T")
R = TypeVar("R")


class Tasks(Protocol):
    """Runs functions over items, each item in a task of its own, perhaps in another process or on
    another machine.

    Function, items and results are pickled, so a task and its caller share nothing but files. The
    caller gets a `ReplicationError` of a task as it was raised, and any other error as an error of
    the runner. A task may run more than once, so each try must write to names of its own.
    """

    @property
    def spark(self) -> Session | None:
        """The Spark session, for plugins that write through Spark; None where tasks run without
        it."""
        ...

    @property
    def folder(self) -> str:
        """A folder or URL that every task can write to, for files that the target reads later. It
        belongs to the replicator, and goes with it. Whoever writes there also removes. It may not
        exist yet."""
        ...

    def map(
        self, function: Callable[[T], R], items: Sequence[T], *, is_urgent: bool = False
    ) -> list[R]:
        """The results in the order of the items. `is_urgent`: these tasks run before waiting tasks
        of other maps."""
        ...
