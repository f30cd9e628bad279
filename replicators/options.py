"""A replicator's advanced settings: numbers within limits, and choices. Pure; knows no database."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import Field, asdict, dataclass, field, fields
from typing import Any, Self

from replicators.connectors.model import modes
from replicators.connectors.model.schema import UNSUPPORTED
from replicators.invalid import InvalidConfig


@dataclass(frozen=True, slots=True)
class Choice:
    """One value of an option: what is stored, its name, and one sentence on its effect."""

    value: str
    label: str
    about: str = ""


def _number(
    label: str, default: float, minimum: float, maximum: float, *, help: str, applies: str
) -> Any:
    metadata = {
        "label": label,
        "minimum": minimum,
        "maximum": maximum,
        "choices": (),
        "help": help,
        "applies": applies,
    }
    return field(default=default, metadata=metadata)


def _choice(label: str, choices: Sequence[Choice], *, help: str, applies: str) -> Any:
    """An option with these choices; the first is the default."""
    metadata = {"label": label, "choices": tuple(choices), "help": help, "applies": applies}
    return field(default=choices[0].value, metadata=metadata)


SUGGESTED = frozenset({"merge_seconds"})
"""Options whose default depends on the target."""

RENAMED = {"unfit": "unsupported", "unfit_values": "unsupported_values"}
"""Former names of options and of a table's fields."""

UNSUPPORTED_CHOICES = (
    Choice(
        UNSUPPORTED[0], "Stop the table", "Nothing of it is merged until a person has looked at it."
    ),
    Choice(
        UNSUPPORTED[1],
        "Quarantine the row",
        "The row waits beside the target, is counted, and can be replayed; the rest goes on.",
    ),
)
MODES = tuple(
    Choice(m.value, modes.text_of(m).label, modes.text_of(m).about) for m in modes.CHOICES
)
SCHEMA_CHANGES = (
    Choice(
        "evolve",
        "Evolve",
        "Added, dropped, renamed and widened columns are followed, and renamed tables where the "
        "source has numbers for them. What can't be followed exactly, such as another key or "
        "type, or rows that the source wrote again, is copied afresh; tables that keep what the "
        "source has no more (soft delete, "
        "history, append) stop there instead.",
    ),
    Choice(
        "lenient",
        "Lenient",
        "Added and widened columns are followed. A dropped column stays, with NULL in new rows. "
        "The table stops at every "
        "other change.",
    ),
    Choice(
        "ignore",
        "Ignore",
        "The copy keeps its columns: new ones are not copied, dropped and renamed ones read "
        "NULL. The table stops where its "
        "key or a type changes so that the copy can't hold the values.",
    ),
    Choice("stop", "Stop", "The table stops at any change until a person asks for its re-sync."),
)
NEW_TABLES = (
    Choice("ask", "Ask", "They are shown on the replicator's page, to be added or ignored."),
    Choice("add", "Add", "They are added and copied, whatever the assessment would say of them."),
    Choice("ignore", "Ignore", "Nothing is done."),
)
LOG_LEVELS = (
    Choice("info", "Normal", "What changes, and what fails: a few lines an hour."),
    Choice("debug", "Debug", "Each merge and each upkeep of a table too: many lines a minute."),
)
WHEN_STALLED = (
    Choice("wait", "Wait", "The connection stays. The source keeps its log meanwhile."),
    Choice(
        "close",
        "Close the connection",
        "The source keeps its log, and has nothing else to do for it. The connection is opened "
        "again as soon as there is room.",
    ),
    Choice(
        "release",
        "Give up the position",
        "The source may remove its log: the replication slot is dropped. The replicator stops, and "
        "all of its tables need a re-sync.",
    ),
)
RETENTION_ACTIONS = (
    Choice("warn", "Warn", "The replicator is marked; nothing else is done."),
    Choice(
        "pause",
        "Pause others",
        "Other replicators of the same server are paused, if their own log lasts, so that this "
        "one catches up. They are resumed by themselves.",
    ),
    Choice(
        "drop",
        "Pause others, then give up the position",
        "Below a quarter of the hours, the replication slot is dropped, which frees the source's "
        "disk. The replicator stops, and all of its tables need a re-sync.",
    ),
)
OWNER_GONE = (
    Choice("keep", "Go on", "Nothing changes."),
    Choice("stop", "Pause", "The replicator is paused. Whoever resumes it becomes its owner."),
)
FIRST_COPY = (
    Choice("copy", "Copy the rows first", "Then their changes follow."),
    Choice(
        "none",
        "Changes only",
        "Every change from the first start on. Tables that are added later are copied first, and "
        "so is a table whose re-sync somebody asks for.",
    ),
    Choice(
        "take_over",
        "Take over",
        "For tables that the target has already, from a dump or another tool. Nothing is copied: "
        "their changes follow from the first start on, and a verification names rows that differ, "
        "to be repaired.",
    ),
)
CONSISTENT = (
    Choice("off", "Each by itself", "A table shows its changes as soon as it is merged."),
    Choice(
        "on",
        "All together",
        "All tables are merged in one transaction of the target, to one end of the log. Readers "
        "see whole transactions of the source, so foreign keys hold at every moment.",
    ),
)
SPARK = (
    Choice("default", "As the installation says", "REPLICATOR_SPARK."),
    Choice("own", "Its own", "A Java process for each run: for large and busy replicators."),
    Choice(
        "shared",
        "Shared",
        "One Java process for the replicators of a machine: for many small ones. A replicator "
        "whose target gives Spark a password or keys keeps its own.",
    ),
)
VANISHED_TABLES = (
    Choice("keep", "Keep", "The table fails and says so; its rows stay in the target."),
    Choice(
        "drop", "Drop", "The table is removed from the replicator, and its rows from the target."
    ),
)


@dataclass(frozen=True, slots=True)
class Options:
    """The advanced settings of a replicator. Each field's metadata has label, limits or choices,
    help, and when a change applies."""

    seal_seconds: float = _number(
        "Write changes to disk every", 1.0, 0.1, 60.0,
        help="Seconds until changes that were read from the source are safe on this side, at most.",
        applies="at the next start",
    )  # fmt: skip
    merge_seconds: float = _number(
        "Merge every", 1.0, 0.1, 3600.0,
        help="Seconds between two merges of a table; longer makes fewer and larger commits. "
             "Some targets have a default of their own.",
        applies="at the next start",
    )  # fmt: skip
    consistent: str = _choice(
        "Merge tables", CONSISTENT,
        help="All together: for databases that can merge all tables in one transaction.",
        applies="at the next start",
    )  # fmt: skip
    retry_minutes: float = _number(
        "Retry for", 1440.0, 1.0, 43200.0,
        help="Minutes a failing replicator or table is tried again before it stops and waits for "
             "a person.",
        applies="at once, for tables at the next start",
    )  # fmt: skip
    keep_hours: float = _number(
        "Keep changes for", 24.0, 0.0, 720.0,
        help="Hours that merged changes stay in the change log.",
        applies="at the next start",
    )  # fmt: skip
    log_gigabytes: float = _number(
        "Change log at most", 0.0, 0.0, 1_000_000.0,
        help="Gigabytes of the change log at which reading waits, and the replicator is stalled; "
             "0: as REPLICATOR_LOG_LIMIT_BYTES says.",
        applies="at the next start",
    )  # fmt: skip
    memory_megabytes: float = _number(
        "Memory at most", 0.0, 0.0, 1_000_000.0,
        help="Megabytes for a run: half is the JVM's, the rest what tasks hold of changes at a "
             "time. All other changes wait on the disk; 0: as the settings say, about 2,000.",
        applies="at the next start",
    )  # fmt: skip
    spark: str = _choice(
        "Spark", SPARK,
        help="Where the work of a run is done.",
        applies="at the next start",
    )  # fmt: skip
    executor_megabytes: float = _number(
        "Executor memory", 0.0, 0.0, 1_000_000.0,
        help="Megabytes for each executor, where Spark is a cluster; 0: as "
             "REPLICATOR_SPARK_EXECUTOR_MEMORY says.",
        applies="at the next start",
    )  # fmt: skip
    executor_cores: float = _number(
        "Executor cores", 0.0, 0.0, 1000.0,
        help="Cores of each executor, where Spark is a cluster; 0: as "
             "REPLICATOR_SPARK_EXECUTOR_CORES says.",
        applies="at the next start",
    )  # fmt: skip
    executor_count: float = _number(
        "Executors", 0.0, 0.0, 10_000.0,
        help="Executors of a run, where Spark is a cluster; 0: as REPLICATOR_SPARK_EXECUTOR_COUNT "
             "says.",
        applies="at the next start",
    )  # fmt: skip
    when_stalled: str = _choice(
        "While stalled", WHEN_STALLED,
        help="What becomes of what the replicator holds at the source, once reading has waited "
             "ten minutes for room in the change log (REPLICATOR_STALLED_SECONDS).",
        applies="at the next start",
    )  # fmt: skip
    warn_hours: float = _number(
        "Warn below", 6.0, 0.0, 720.0,
        help="Hours that the source still keeps its log, or that the change log has room for, "
             "below which the replicator is marked; 0: never.",
        applies="at once",
    )  # fmt: skip
    source_gigabytes: float = _number(
        "Log at the source at most", 0.0, 0.0, 1_000_000.0,
        help="Gigabytes of its log that the source may keep for this replicator. The hours until "
             "then count like hours until the source drops it; 0: only the source's own limit.",
        applies="at the next start",
    )  # fmt: skip
    retention_action: str = _choice(
        "When the source's log runs out", RETENTION_ACTIONS,
        help="What is done below the hours of Warn below, for sources that keep their log for "
             "each replicator.",
        applies="at the next start",
    )  # fmt: skip
    first_copy: str = _choice(
        "First copy", FIRST_COPY,
        help="Whether the rows that the source has already are copied. Changes only: for targets "
             "that take every change. Take over: for databases that have the tables.",
        applies="at the first start",
    )  # fmt: skip
    mode: str = _choice(
        "Mode", MODES,
        help="How tables are copied, and what becomes of deleted rows; a table may differ.",
        applies="at once, by copying the tables afresh",
    )  # fmt: skip
    unsupported_values: str = _choice(
        "Values the target can't hold", UNSUPPORTED_CHOICES,
        help="What happens at a value such as an infinite date; rows are quarantined only in "
             "mirrors and with soft delete, and not where inserts are left out.",
        applies="at once, for what is read from then on",
    )  # fmt: skip
    schema_changes: str = _choice(
        "Schema changes", SCHEMA_CHANGES,
        help="What becomes of a table whose columns, types or key change at the source while it "
             "is copied.",
        applies="at the next start",
    )  # fmt: skip
    new_tables: str = _choice(
        "New tables", NEW_TABLES,
        help="What becomes of tables that appear at the source, in schemas that tables are "
             "copied from already.",
        applies="at the next start",
    )  # fmt: skip
    vanished_tables: str = _choice(
        "Vanished tables", VANISHED_TABLES,
        help="What becomes of the copy of a table that is dropped at the source.",
        applies="at the next start",
    )  # fmt: skip

    owner_gone: str = _choice(
        "When its owner loses the right", OWNER_GONE,
        help="What becomes of the replicator once the person who made it is deactivated or may "
             "not edit any more.",
        applies="at once",
    )  # fmt: skip
    log_level: str = _choice(
        "Log", LOG_LEVELS,
        help="How much the replicator's log tells.",
        applies="at the next start",
    )  # fmt: skip

    @classmethod
    def parse(
        cls, data: Mapping[str, Any] | None, defaults: Mapping[str, Any] | None = None
    ) -> Self:
        """Check the values and add the defaults; InvalidConfig names every fault. `defaults`: those
        that differ from the fields' own, as a target suggests them."""
        values, errors = _read(cls, data or {})
        if errors:
            raise InvalidConfig(errors)
        return cls(**{**(defaults or {}), **values})

    @classmethod
    def readable(cls, data: Mapping[str, Any] | None) -> Self:
        """The values that can be read, with defaults for the others.

        This is for pages and drafts, which show the faults elsewhere. A run uses `parse`, since a
        mode that it can't read is not the default mode.
        """
        return cls(**_read(cls, data or {})[0])

    def to_json(self) -> dict[str, Any]:
        """Every option with its value."""
        return asdict(self)


def _unknown(name: str) -> str:
    return f"is called `{RENAMED[name]}` now" if name in RENAMED else "is not an option"


def _read(kind: type[Options], data: Mapping[str, Any]) -> tuple[dict[str, Any], dict[str, str]]:
    """The correct values, and what is wrong with the others."""
    known = {f.name: f for f in fields(kind)}
    errors = {f"options.{k}": _unknown(k) for k in data if k not in known}
    values: dict[str, Any] = {}
    for name, raw in data.items():
        if name not in known or raw in (None, ""):
            continue
        try:
            values[name] = _parsed(known[name], raw)
        except ValueError as err:
            errors[f"options.{name}"] = str(err)
    return values, errors


def _parsed(option: Field[Any], raw: Any) -> Any:
    """The option's value; ValueError says what it must be."""
    choices = option.metadata["choices"]
    if choices:
        known = [c.value for c in choices]
        if raw not in known:
            raise ValueError(f"must be one of {', '.join(known)}")
        return raw
    low, high = option.metadata["minimum"], option.metadata["maximum"]
    number = _as_number(raw)
    if number is None or not low <= number <= high:
        raise ValueError(f"must be a number from {low:g} to {high:g}")
    return number


def _as_number(raw: Any) -> float | None:
    if isinstance(raw, bool):
        return None
    try:
        return float(raw)
    except (TypeError, ValueError, OverflowError):
        return None
