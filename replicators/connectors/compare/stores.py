"""Where the results lie: the current data set, its history by effective date, the sensitive
columns, and the rows that could not be used.

The order of writes is the same in every format. The day's part of history, of the sensitive columns
and of the unusable rows is written first, each again from scratch when a day is tried again. The
current data set is published last, in one step, with its state. What is dated later than that state
belongs to a comparison that did not end, and the next one removes it.
"""

from __future__ import annotations

from datetime import date
from typing import TYPE_CHECKING, Protocol

from replicators.connectors.compare.config import CompareConfig, Format, Place
from replicators.connectors.compare.state import State
from replicators.connectors.problems.errors import ReplicationError

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession


class Store(Protocol):
    """The tables of one configuration."""

    def state(self) -> State | None:
        """What the current data set says about itself; None where there is none yet.
        `compare:not-ours`."""
        ...

    def current(self) -> DataFrame | None:
        """The current data set as it is now; a later `publish` does not change what is read from
        this frame."""
        ...

    def days(self, place: Place) -> list[date]:
        """The dates for which a table has rows, in order; none where it does not exist."""
        ...

    def rows(self, place: Place) -> DataFrame:
        """The rows of a table that is divided by date."""
        ...

    def write_day(self, place: Place, rows: DataFrame, day: date) -> None:
        """Make `rows` the rows of this date in a table that is divided by date. All of them have
        it. `compare:history-columns`."""
        ...

    def remove_day(self, place: Place, day: date) -> None:
        """Remove the rows of a date."""
        ...

    def publish(self, rows: DataFrame, state: State) -> None:
        """Replace the current data set in one step."""
        ...


def open_store(spark: SparkSession, config: CompareConfig) -> Store:
    """The store of the configuration's format."""
    if config.format == Format.PARQUET:
        from replicators.connectors.compare.parquet import ParquetStore

        return ParquetStore(spark, config)
    from replicators.connectors.compare.tables import TableStore

    return TableStore(spark, config)


def divided_places(config: CompareConfig) -> tuple[Place, ...]:
    """The tables that are divided by date."""
    sensitive = () if config.sensitive is None else (config.sensitive,)
    return (config.history, *sensitive, config.quarantine)


def remove_unpublished(store: Store, config: CompareConfig, state: State | None, day: date) -> None:
    """Remove what a comparison left that did not end. Without a current data set only rows of `day`
    can be from one; others mean that the history is another's:
    `compare:history-without-current`."""
    for place in divided_places(config):
        for found in store.days(place):
            if found == day or (state is not None and found > state.day):
                store.remove_day(place, found)
            elif state is None and place != config.quarantine:
                raise ReplicationError(
                    "compare:history-without-current", place=place, days=found.isoformat()
                )
