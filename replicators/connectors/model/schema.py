"""Tables and columns as a source describes them."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any, Self

import pyarrow as pa

from replicators.connectors.model.types import (
    LogicalType,
    Unsupported,
    arrow_type,
    type_from_json,
    type_to_json,
)
from replicators.connectors.schema.steps import SchemaStep


@dataclass(frozen=True, slots=True, order=True)
class TableId:
    """A table's name within its database: `schema` and `name`, as the source spells them."""

    schema: str
    name: str

    def __str__(self) -> str:
        return f"{self.schema}.{self.name}"


@dataclass(frozen=True, slots=True)
class Column:
    """A column. `ordinal` is the source's stable number for it (PostgreSQL: attnum; 0 where it has
    none). `native` is the text of its type there. `wire` is the source plugin's own word for how
    its values look in the log and in a snapshot query. `missing` is the value of rows that existed
    before the column, as the source's text (None: NULL, or not known). `comment` is what the source
    says of the column; another comment is no other column."""

    name: str
    type: LogicalType
    native: str
    nullable: bool = True
    ordinal: int = 0
    generated: bool = False
    wire: str = ""
    missing: str | None = None
    comment: str = field(default="", compare=False)

    def to_json(self) -> dict[str, Any]:
        reported = {} if self.missing is None else {"missing": self.missing}
        reported |= {"comment": self.comment} if self.comment else {}
        return reported | {
            "name": self.name,
            "type": type_to_json(self.type),
            "native": self.native,
            "nullable": self.nullable,
            "ordinal": self.ordinal,
            "generated": self.generated,
            "wire": self.wire,
        }

    @classmethod
    def from_json(cls, data: dict[str, Any]) -> Self:
        return cls(**{**data, "type": type_from_json(data["type"])})


def part_number(part: int) -> int:
    """The source's number of a part of a table, from an entry of `TableSchema.partitions`."""
    return abs(part) & 0xFFFF_FFFF


@dataclass(frozen=True, slots=True)
class TableSchema:
    """The schema of a table that is copied.

    `key` names the columns that identify a row in the log (the replica identity; empty: none), and
    `primary_key` those of the primary key. `native_id` is the source's own number of the table
    (PostgreSQL: OID). `columns` holds the copied columns only. `full_before` is true where the log
    carries whole before images. `filter` is the text of the table's row filter (`filters`), empty
    for all rows.

    Some fields show changes that send no rows; each is empty where the source can't say. `storage`
    changes when rows are written again. `partitions` are the numbers of a partitioned table and its
    parts, negative for a part that was a table of its own before (it came with rows). The number is
    in the lower 32 bits (`part_number`). The bits above, where the source can give them, tell one
    time that it became a part from another. `marks` are pairs of a number and a value that changes:
    each part and its file, or 0 and the table's file, and each column (by `ordinal`) and what
    altered it last.

    For reading the log: `layout` has every column that the log may carry, in its order, as
    (ordinal, name, number of its type), a dropped column without a name. `former` has names and
    ordinals of an earlier description. `called` is the table's name at the source, where it differs
    from `id`, under which it was chosen. `left_out` names columns that were added after the copy
    was made and are not followed.

    `member` is the source's number of the table's place in our stream since the copy's consistent
    snapshot was opened (0: it has none). Another number means that the table was taken out and put
    back.

    `key_index` is the name of the index that `key` comes from, where that is no primary key and the
    source's log needs it.

    Where the source's columns have no numbers (`ColumnKnowledge.BY_STATEMENTS`): `steps` is what
    statements did to the columns, up to the log's position `upto` (0: the source gives none). The
    description includes all of the log up to there. A copy was read while the log went on up to
    `read_upto`. `known` is the copy's own schema, where it is to stay: for reading the log.
    `copy_numbers`: the columns have numbers that were given when their copy began; the next copy's
    numbers mean something else.

    `comment` is what the source says of the table; another comment is no other schema.
    """

    id: TableId
    columns: tuple[Column, ...]
    key: tuple[str, ...] = ()
    primary_key: tuple[str, ...] = ()
    native_id: int = 0
    full_before: bool = False
    storage: str = ""
    partitions: tuple[int, ...] = ()
    marks: tuple[tuple[int, int], ...] = ()
    layout: tuple[tuple[int, str, int], ...] = ()
    former: tuple[tuple[str, int], ...] = ()
    filter: str = ""
    called: TableId | None = None
    left_out: tuple[str, ...] = ()
    steps: tuple[SchemaStep, ...] = ()
    upto: int = 0
    read_upto: int = 0
    known: TableSchema | None = None
    key_index: str = ""
    member: int = 0
    copy_numbers: bool = False
    comment: str = field(default="", compare=False)

    @property
    def source_id(self) -> TableId:
        """The table's name at the source."""
        return self.called or self.id

    def column(self, name: str) -> Column:
        """The column called `name`; KeyError where there is none."""
        for column in self.columns:
            if column.name == name:
                return column
        raise KeyError(name)

    @property
    def supported(self) -> tuple[Column, ...]:
        """The columns whose type can be copied."""
        return tuple(c for c in self.columns if not isinstance(c.type, Unsupported))

    @property
    def bare(self) -> Self:
        """The same schema without the fields that are only for reading the log."""
        return replace(self, layout=(), former=(), steps=(), known=None)

    def arrow_schema(self) -> pa.Schema:
        """The Arrow schema of a row image: one field per column, in order."""
        return pa.schema(
            [pa.field(c.name, arrow_type(c.type), nullable=True) for c in self.columns]
        )

    def to_json(self) -> dict[str, Any]:
        return {
            "schema": self.id.schema,
            "name": self.id.name,
            "columns": [c.to_json() for c in self.columns],
            "key": list(self.key),
            "primary_key": list(self.primary_key),
            "native_id": self.native_id,
            "full_before": self.full_before,
            "storage": self.storage,
            "partitions": list(self.partitions),
            "filter": self.filter,
            **({"marks": [list(one) for one in self.marks]} if self.marks else {}),
            **({"layout": [list(one) for one in self.layout]} if self.layout else {}),
            **({"former": [list(one) for one in self.former]} if self.former else {}),
            **({"called": [self.called.schema, self.called.name]} if self.called else {}),
            **({"left_out": list(self.left_out)} if self.left_out else {}),
            **({"steps": [s.to_json() for s in self.steps]} if self.steps else {}),
            **({"upto": self.upto} if self.upto else {}),
            **({"read_upto": self.read_upto} if self.read_upto else {}),
            **({"known": self.known.to_json()} if self.known is not None else {}),
            **({"key_index": self.key_index} if self.key_index else {}),
            **({"member": self.member} if self.member else {}),
            **({"copy_numbers": True} if self.copy_numbers else {}),
            **({"comment": self.comment} if self.comment else {}),
        }

    @classmethod
    def from_json(cls, data: dict[str, Any]) -> Self:
        return cls(
            id=TableId(data["schema"], data["name"]),
            columns=tuple(Column.from_json(c) for c in data["columns"]),
            key=tuple(data["key"]),
            primary_key=tuple(data.get("primary_key", ())),
            native_id=data.get("native_id", 0),
            full_before=data.get("full_before", False),
            storage=data.get("storage", ""),
            partitions=tuple(data.get("partitions", ())),
            marks=tuple((number, mark) for number, mark in data.get("marks", ())),
            layout=tuple((n, name, kind) for n, name, kind in data.get("layout", ())),
            former=tuple((name, n) for name, n in data.get("former", ())),
            filter=data.get("filter", ""),
            called=TableId(*data["called"]) if data.get("called") else None,
            left_out=tuple(data.get("left_out", ())),
            steps=tuple(SchemaStep.from_json(s) for s in data.get("steps", ())),
            upto=data.get("upto", 0),
            read_upto=data.get("read_upto", 0),
            known=cls.from_json(data["known"]) if data.get("known") else None,
            key_index=data.get("key_index", ""),
            member=data.get("member", 0),
            copy_numbers=data.get("copy_numbers", False),
            comment=data.get("comment", ""),
        )


@dataclass(frozen=True, slots=True)
class TableSummary:
    """A line of the table list: cheap to make for thousands of tables."""

    id: TableId
    rows_estimated: int | None = None
    size_bytes: int | None = None
    has_key: bool = False
    columns: int = 0


EXCLUDABLE = ("inserts", "updates", "deletes")
UNSUPPORTED = ("stop", "quarantine")


@dataclass(frozen=True, slots=True)
class TableSelection:
    """A table that a replicator copies. No `columns` means all of them, also those added later.
    `excluded` names the kinds of changes that are not applied to the copy (`EXCLUDABLE`); a
    TRUNCATE counts as deletes. Without inserts the copy still updates the rows that its snapshot
    had. `filter` is the text of a row filter (`filters`). `mode` is a `modes.Mode`. `unsupported`
    (`UNSUPPORTED`) says what happens at a value that the target can't hold. Where these two are
    empty, the replicator's setting applies."""

    id: TableId
    columns: tuple[str, ...] = field(default=())
    excluded: tuple[str, ...] = field(default=())
    mode: str = ""
    filter: str = ""
    unsupported: str = ""

    @property
    def follows_without_inserts(self) -> bool:
        """Whether inserts are left out and another kind of change is applied. Where nothing is
        applied, the copy stays as it was made."""
        return "inserts" in self.excluded and set(self.excluded) != set(EXCLUDABLE)
