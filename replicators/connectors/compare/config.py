"""The configuration of a comparison: a YAML file, parsed into frozen objects. It loads no Spark."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from enum import StrEnum
from pathlib import Path
from typing import TypeVar
from urllib.parse import urlsplit

from replicators.connectors.compare.diff import Kind, Names
from replicators.connectors.compare.hashing import KEY_HASH, VALUE_HASH, Algorithm
from replicators.connectors.compare.yaml_lines import Faults, Value, parsed
from replicators.connectors.problems.errors import ReplicationError

_TYPE = re.compile(
    r"string|boolean|tinyint|smallint|int|bigint|float|double|date|timestamp|timestamp_ntz|binary"
    r"|decimal\((?P<precision>\d{1,2})\s*,\s*(?P<scale>\d{1,2})\)"
)
_TYPES = (
    "string, boolean, tinyint, smallint, int, bigint, float, double, decimal(p,s), date, "
    "timestamp, timestamp_ntz, binary"
)
_TABLE = re.compile(r"\w+(\.\w+)*", re.ASCII)
_JDBC = re.compile(r"(jdbc:)?(sqlite|postgresql)(\+\w+)?:")
_NAME = re.compile(r"\w+", re.ASCII)
_MAX_DIGITS = 38

E = TypeVar("E", bound=StrEnum)


class Format(StrEnum):
    """How tables are stored."""

    ICEBERG = "iceberg"
    DELTA = "delta"
    PARQUET = "parquet"


class InputFormat(StrEnum):
    """How a data set is delivered. Spark reads Avro with a jar of its own: the session loads it."""

    CSV = "csv"
    JSON = "json"
    PARQUET = "parquet"
    ORC = "orc"
    AVRO = "avro"


class CatalogType(StrEnum):
    """Where tables are registered. NONE: they are known by path only. SESSION: the catalog that
    Spark has already under that name; nothing is configured."""

    NONE = "none"
    JDBC = "jdbc"
    HADOOP = "hadoop"
    HIVE = "hive"
    GLUE = "glue"
    REST = "rest"
    SESSION = "session"


_OF_ICEBERG = tuple(t for t in CatalogType if t != CatalogType.NONE)
_OF_PATHS = (CatalogType.NONE, CatalogType.HIVE, CatalogType.GLUE, CatalogType.SESSION)


@dataclass(frozen=True, slots=True)
class Column:
    """A column as it is stored. `is_compared`: a change of it makes the row an update.
    `is_sensitive`: it is stored in a table of its own."""

    name: str
    type: str
    is_key: bool = False
    is_nullable: bool = True
    is_compared: bool = True
    is_sensitive: bool = False


@dataclass(frozen=True, slots=True)
class Place:
    """Where a table lies: a folder or URL, a name in the catalog, or both."""

    path: str = ""
    table: str = ""

    def __str__(self) -> str:
        return self.table or self.path

    def beside(self, suffix: str) -> Place:
        """A place next to this one."""
        return Place(self.path and self.path + suffix, self.table and self.table + suffix)


@dataclass(frozen=True, slots=True)
class Catalog:
    """Where tables are registered. `name`: under which Spark knows an Iceberg catalog. `options`
    go to the Iceberg catalog as they are."""

    type: CatalogType = CatalogType.NONE
    uri: str = ""
    warehouse: str = ""
    name: str = "lake"
    options: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Input:
    """How data sets are read: the format, and options of Spark's reader."""

    format: InputFormat = InputFormat.CSV
    options: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class CompareConfig:
    """What is compared, and where the results lie.

    `keep_deleted`: rows that were deleted stay in the current table, with the operation D.
    `max_deleted`: the share of rows that a full set may delete. `broadcast_rows`: key hashes up to
    this number are sent to every executor. `checked_rows`: how many rows with the same key hash
    are compared by value. `partition_by`: columns of the current table.
    """

    columns: tuple[Column, ...]
    current: Place
    history: Place
    sensitive: Place | None
    quarantine: Place
    kind: Kind = Kind.FULL
    format: Format = Format.PARQUET
    hash: Algorithm = Algorithm.XXHASH64
    names: Names = Names()
    input: Input = Input()
    catalog: Catalog = Catalog()
    partition_by: tuple[str, ...] = ()
    keep_deleted: bool = True
    max_deleted: float = 0.5
    broadcast_rows: int = 200_000
    checked_rows: int = 10_000

    @property
    def keys(self) -> tuple[str, ...]:
        """The names of the key columns."""
        return tuple(c.name for c in self.columns if c.is_key)

    @property
    def compared(self) -> tuple[str, ...]:
        """The names of the columns of which a change makes an update."""
        return tuple(c.name for c in self.columns if c.is_compared and not c.is_key)

    @property
    def open_columns(self) -> tuple[str, ...]:
        """The names of the columns that are not sensitive."""
        return tuple(c.name for c in self.columns if not c.is_sensitive)

    @property
    def sensitive_columns(self) -> tuple[str, ...]:
        """The names of the sensitive columns."""
        return tuple(c.name for c in self.columns if c.is_sensitive)


def read(path: str | Path) -> CompareConfig:
    """The configuration in a file. `compare:config` names every fault with its line."""
    try:
        text = Path(path).read_text("utf-8")
    except (OSError, UnicodeDecodeError) as err:
        raise ReplicationError(
            "compare:config", faults=f"The file {path} can't be read as text"
        ) from err
    return parse(text, str(path))


def parse(text: str, name: str = "config.yaml") -> CompareConfig:
    """The configuration in a text; `name` is the file's. As `read`."""
    faults = Faults()
    top = parsed(text, name, faults)
    config = None if top is None else _config(top)
    if config is None or faults.found:
        raise ReplicationError("compare:config", faults=f"{name}: {faults}")
    return config


_TOP = (
    "kind", "format", "hash", "names", "input", "keys", "non_keys", "current", "history",
    "sensitive", "quarantine", "catalog", "keep_deleted", "max_deleted", "broadcast_rows",
    "checked_rows",
)  # fmt: skip


def _config(top: Value) -> CompareConfig:
    """What the document says. It is worth something only where no fault was noted."""
    entries = top.mapping(_TOP)
    form = _choice(entries, "format", Format, Format.PARQUET)
    columns = _columns(entries, top)
    catalog = _catalog(entries.get("catalog"), form)
    names = _names(entries.get("names"))
    places = {
        n: _place(entries[n], form, catalog)
        for n in ("current", "history", "sensitive", "quarantine")
        if n in entries
    }
    for needed in ("current", "history"):
        if needed not in places:
            top.faults.add(top.line, f"`{needed}` is missing: where the {needed} rows lie")
    _sensitive_fault(columns, places, entries, top)
    _name_faults(columns, names, entries)
    _same_place_fault(places, entries)
    current, history = places.get("current", Place()), places.get("history", Place())
    return CompareConfig(
        columns=columns,
        current=current,
        history=history,
        sensitive=places.get("sensitive"),
        quarantine=places.get("quarantine") or history.beside("_quarantined"),
        kind=_choice(entries, "kind", Kind, Kind.FULL),
        format=form,
        hash=_choice(entries, "hash", Algorithm, Algorithm.XXHASH64),
        names=names,
        input=_input(entries.get("input")),
        catalog=catalog,
        partition_by=_partitions(entries.get("current"), columns),
        keep_deleted=_flag(entries, "keep_deleted", True),
        max_deleted=_number(entries, "max_deleted", 0.5, 1),
        broadcast_rows=int(_number(entries, "broadcast_rows", 200_000, 1e8)),
        checked_rows=int(_number(entries, "checked_rows", 10_000, 1e9)),
    )


def _choice(entries: Mapping[str, Value], name: str, of: type[E], default: E) -> E:
    return (entries[name].choice(of) or default) if name in entries else default


def _number(entries: Mapping[str, Value], name: str, default: float, maximum: float) -> float:
    return entries[name].number(0, maximum) if name in entries else default


def _text(entries: Mapping[str, Value], name: str, default: str = "") -> str:
    return entries[name].text() if name in entries else default


def _flag(entries: Mapping[str, Value], name: str, default: bool) -> bool:
    return entries[name].flag() if name in entries else default


def _columns(entries: Mapping[str, Value], top: Value) -> tuple[Column, ...]:
    """Keys first, each group in the order of the file."""
    if "keys" not in entries:
        top.faults.add(top.line, "`keys` is missing: the columns that identify a row")
        return ()
    keys = entries["keys"].mapping()
    if not keys:
        entries["keys"].fault("needs at least one column")
    others = entries["non_keys"].mapping() if "non_keys" in entries else {}
    for name in keys.keys() & others.keys():
        others[name].fault("is also a key")
    found = [_column(name, value, is_key=True) for name, value in keys.items()]
    found += [_column(name, value) for name, value in others.items()]
    return tuple(found)


def _column(name: str, value: Value, *, is_key: bool = False) -> Column:
    """`name: type`, or `name: {type: ..., nullable: ..., ...}`."""
    if not value.is_mapping:
        return Column(name, _type(value), is_key, is_nullable=not is_key)
    allowed = ("type", "sensitive") if is_key else ("type", "nullable", "compared", "sensitive")
    entries = value.mapping(allowed)
    if "type" not in entries:
        value.fault("needs a type")
    return Column(
        name,
        _type(replace(entries["type"], name=name)) if "type" in entries else "string",
        is_key,
        is_nullable=_flag(entries, "nullable", not is_key),
        is_compared=_flag(entries, "compared", True),
        is_sensitive=_flag(entries, "sensitive", False),
    )


def _type(value: Value) -> str:
    found = value.text().strip().lower()
    match = _TYPE.fullmatch(found)
    if match is None:
        value.fault(f"has the unknown type {found}; known are {_TYPES}")
        return "string"
    if match["precision"] and not (
        1 <= int(match["precision"]) <= _MAX_DIGITS
        and int(match["scale"]) <= int(match["precision"])
    ):
        value.fault("needs decimal(p,s) with p from 1 to 38 and s at most p")
    return re.sub(r"\s", "", found)


def _catalog(value: Value | None, form: Format) -> Catalog:
    is_iceberg = form == Format.ICEBERG
    if value is None:
        return Catalog(CatalogType.SESSION if is_iceberg else CatalogType.NONE)
    entries = value.mapping(("type", "uri", "warehouse", "name", "options"))
    default = CatalogType.SESSION if is_iceberg else CatalogType.NONE
    kind = _choice(entries, "type", CatalogType, default)
    allowed = _OF_ICEBERG if is_iceberg else _OF_PATHS
    if kind not in allowed:
        value.fault(f"of {form} tables must have a type of {', '.join(allowed)}")
    for needed, kinds in (("uri", ("jdbc", "rest")), ("warehouse", ("jdbc", "hadoop"))):
        if kind in kinds and needed not in entries:
            value.fault(f"of type {kind} needs `{needed}`")
    uri, name = _text(entries, "uri"), _text(entries, "name", "lake")
    if kind == CatalogType.JDBC and uri and not _JDBC.match(uri):
        entries["uri"].fault("must begin with sqlite:/// or postgresql://")
    if _has_password(uri):
        entries["uri"].fault(
            "must not have a password; set the environment variable COMPARE_CATALOG_PASSWORD"
        )
    if not _NAME.fullmatch(name):
        entries["name"].fault("must be a word of letters, digits and underscores")
    options = entries["options"].mapping() if "options" in entries else {}
    return Catalog(
        kind,
        uri,
        _absolute(_text(entries, "warehouse")),
        name,
        {n: v.text() for n, v in options.items()},
    )


def _has_password(uri: str) -> bool:
    try:
        return urlsplit(uri.removeprefix("jdbc:")).password is not None
    except ValueError:
        return False


def _names(value: Value | None) -> Names:
    if value is None:
        return Names()
    entries = value.mapping(("operation", "start"))
    default = Names()
    return Names(
        _text(entries, "operation", default.operation), _text(entries, "start", default.start)
    )


def _input(value: Value | None) -> Input:
    if value is None:
        return Input()
    entries = value.mapping(("format", "options"))
    options = entries["options"].mapping() if "options" in entries else {}
    return Input(
        _choice(entries, "format", InputFormat, InputFormat.CSV),
        {n: v.text() for n, v in options.items()},
    )


def _place(value: Value, form: Format, catalog: Catalog) -> Place:
    allowed = ("path", "table", "partition_by") if value.name == "current" else ("path", "table")
    entries = value.mapping(allowed)
    place = Place(_absolute(_text(entries, "path")), _text(entries, "table"))
    if set(place.path) & set("'`"):
        entries["path"].fault("must not have quotes")
    if place.table and not _TABLE.fullmatch(place.table):
        entries["table"].fault(
            "must be words of letters, digits and underscores, with dots between"
        )
    if form == Format.ICEBERG:
        if not place.table:
            value.fault("needs `table`: an Iceberg table has a name in a catalog")
    elif not place.path:
        value.fault("needs `path`")
    elif place.table and catalog.type == CatalogType.NONE:
        value.fault("has a table's name, but no `catalog` is configured")
    return place


def _absolute(path: str) -> str:
    """A path without a scheme is one of this machine."""
    return path if not path or "://" in path else os.path.abspath(path)


def _partitions(value: Value | None, columns: tuple[Column, ...]) -> tuple[str, ...]:
    entries = value.mapping(("path", "table", "partition_by")) if value and value.is_mapping else {}
    if "partition_by" not in entries:
        return ()
    found = entries["partition_by"].texts()
    known = {c.name for c in columns if not c.is_sensitive}
    for name in set(found) - known:
        entries["partition_by"].fault(f"names `{name}`, which is no column of the table")
    return found


def _sensitive_fault(
    columns: tuple[Column, ...],
    places: Mapping[str, Place],
    entries: Mapping[str, Value],
    top: Value,
) -> None:
    has_any = any(c.is_sensitive for c in columns)
    if has_any and "sensitive" not in places:
        top.faults.add(top.line, "`sensitive` is missing: where the sensitive columns lie")
    if not has_any and "sensitive" in places:
        entries["sensitive"].fault("is given, but no column is sensitive")
    if columns and all(c.is_sensitive for c in columns):
        entries["keys"].fault("and all other columns are sensitive; one must not be")


def _name_faults(columns: tuple[Column, ...], names: Names, entries: Mapping[str, Value]) -> None:
    """Names are compared as most catalogs compare them: without regard to case."""
    taken = {n.lower() for n in (names.operation, names.start, KEY_HASH, VALUE_HASH)}
    if len(taken) < 4 and "names" in entries:
        entries["names"].fault("must be different from each other")
    seen: set[str] = set()
    for column in columns:
        group = entries["keys" if column.is_key else "non_keys"]
        value = group.mapping()[column.name]
        if column.name.lower() in taken:
            value.fault("is a name of a column that the comparison adds; see `names`")
        if column.name.lower() in seen:
            value.fault("differs from another column only by case")
        seen.add(column.name.lower())


def _same_place_fault(places: Mapping[str, Place], entries: Mapping[str, Value]) -> None:
    for kind in ("path", "table"):
        seen: dict[str, str] = {}
        for name, place in places.items():
            where = getattr(place, kind)
            if where and where in seen:
                entries[name].fault(f"has the same {kind} as `{seen[where]}`")
            seen.setdefault(where, name)
