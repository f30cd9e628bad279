"""Decides how the rows of a TABLE_MAP become rows of a chosen table: which columns, of which types.
Reads no rows."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from replicators.connectors.model.schema import Column, TableId, TableSchema
from replicators.connectors.model.types import (
    Array,
    Bytes,
    Enum,
    Float,
    Int,
    Json,
    LogicalType,
    String,
    Unsupported,
    type_to_json,
)
from replicators.connectors.mysql import sql
from replicators.connectors.schema.numbering import ColumnNumbering
from replicators.connectors.schema.steps import SchemaStep, StepKind
from replicators.sources.mysql import kernels as k
from replicators.sources.mysql.charsets import UTF8, decoder_of
from replicators.sources.mysql.defaults import missing_of
from replicators.sources.mysql.tablemaps import (
    BINARY_COLLATION,
    BIT,
    BLOB_COMPRESSED,
    BLOBS,
    CHARACTERS,
    DATE,
    DATETIME2,
    DOUBLE,
    ENUM,
    FIXED_BYTES,
    FLOAT,
    GEOMETRY,
    INTEGER_WIRES,
    JSON,
    NEWDATE,
    NEWDECIMAL,
    SET,
    STRING,
    TIME2,
    TIMESTAMP2,
    VARCHAR_COMPRESSED,
    VECTOR,
    YEAR,
    MapColumn,
    TableMap,
)  # fmt: skip
from replicators.sources.mysql.types import (
    INTEGER_TYPES,
    Known,
    bit,
    decimal,
    has_labels,
    moment,
    text,
)


@dataclass(frozen=True, slots=True)
class Schema:
    """A table as one TABLE_MAP sends it: `schema` holds the columns decoded, `where` their numbers
    in the rows.

    `code` is set where the table can't be decoded with this schema; `column` and `reason` are set
    too where one column is the cause.
    """

    schema: TableSchema
    version: str
    map: TableMap
    where: tuple[int, ...]
    code: str = ""
    column: str = ""
    reason: str = ""

    @property
    def facts(self) -> dict[str, str]:
        """Facts for the error's text."""
        if not self.column:
            return {}
        quoted = sql.table(self.schema.source_id)
        return {"column": self.column, "reason": self.reason, "quoted": quoted}


def find_table(table: TableId, tables: Iterable[TableSchema]) -> TableSchema | None:
    """The chosen table of that name."""
    return next((t for t in tables if t.id == table), None)


def schema_of(
    found: TableMap,
    table: TableSchema,
    charsets: Mapping[int, str],
    steps: Sequence[SchemaStep] = (),
) -> Schema:
    """How rows of `found` become rows of `table`: the chosen columns that it has, with its types.
    `steps`: earlier changes of the table's columns; the description of the table may be newer than
    the rows."""
    numbers = {c.name: i for i, c in enumerate(found.columns)}
    past = Past(table.known, steps)
    columns = []
    code, strange, reason = "", "", ""
    followed = {c.name for c in table.supported}
    there = followed | {name for _, name, _ in table.layout}
    for column in _chosen(table, past, numbers):
        sent = as_sent(column, found.columns[numbers[column.name]], charsets)
        if not isinstance(sent.type, Unsupported):
            columns.append(sent)
        elif column.name in there:
            # If this column were skipped, its values would be lost silently.
            strange = column.name
            code, reason = _why(found.columns[numbers[strange]], sent.type.native)
    schema = _reported(replace(table, key=_key(table, past, numbers)), columns, past, steps)
    if not found.has_names:
        code, strange = "source:row-metadata", ""
    elif not set(schema.key) <= {c.name for c in columns}:
        code, strange = code or "source:key-changed", strange
    where = tuple(numbers[c.name] for c in columns)
    return Schema(schema, _version(found.columns, schema), found, where, code, strange, reason)


def _why(sent: MapColumn, native: str) -> tuple[str, str]:
    """Code and reason for a column whose values can't be read in the log's form."""
    if sent.kind in (BLOB_COMPRESSED, VARCHAR_COMPRESSED):
        return "source:column-packed", "it is stored COMPRESSED"
    return "source:value-unsupported", f"the log has it in a form that is not known ({native})"


def schema_without_rows(table: TableSchema, steps: Sequence[SchemaStep]) -> tuple[TableSchema, str]:
    """The table's schema as rows would tell it, and its version, if there are no rows. It comes
    from the copy's schema and these steps, because the description may be newer."""
    past = Past(table.known, steps)
    numbers = {c.name: n for n, c in enumerate(table.supported)}
    if table.known is not None:
        spelled = {c.name.lower(): c.name for c in (*table.known.columns, *table.supported)}
        numbers = {spelled.get(name, name): n for n, name in enumerate(sorted(past.names))}
    key = _key(table, past, numbers)
    columns = [_unless_said(c, past) for c in _chosen(table, past, numbers)]
    schema = _reported(replace(table, key=key), columns, past, steps)
    return schema, _version((), schema)


def _unless_said(column: Column, past: Past) -> Column:
    """The copy's own column if no statement changed its type so far: the description may include a
    later change."""
    known = past.known(column.name)
    if known is None or past.said(column.name):
        return column
    return replace(known, name=column.name, ordinal=0)


def _reported(
    table: TableSchema, columns: Sequence[Column], past: Past, steps: Sequence[SchemaStep]
) -> TableSchema:
    """The table with these columns, the values of old rows in them, and the steps."""
    upto = max((s.position for s in steps), default=1)
    filled = [past.filled(c) for c in columns]
    reported = [SchemaStep(upto, StepKind.UNFILLED, new=c.name) for c, known in filled if not known]
    return replace(
        table,
        columns=tuple(c for c, _ in filled),
        steps=(*steps, *reported),
        upto=upto,
        layout=(),
        known=None,
    )


def described(table: TableSchema, steps: Sequence[SchemaStep]) -> TableSchema | None:
    """The catalog's description as rows of the log would tell it after these steps; None if one of
    the two is newer, so that they do not fit."""
    past = Past(table.known, steps)
    names = {c.name.lower() for c in table.supported}
    there = {name.lower() for _, name, _ in table.layout}
    if table.known is not None and not (names <= past.names <= there):
        return None
    numbers = {c.name: n for n, c in enumerate(table.supported)}
    return _reported(table, list(_chosen(table, past, numbers)), past, steps)


class Past:
    """What happened to the columns of a copy's schema (None: unknown) before some rows."""

    def __init__(self, known: TableSchema | None, steps: Sequence[SchemaStep]) -> None:
        columns = known.columns if known is not None else ()
        after = known.upto if known is not None else 0
        self._columns = dict(enumerate(columns, 1))
        self._numbering = ColumnNumbering.of({c.name: n for n, c in self._columns.items()})
        self._numbering.go(s for s in steps if s.position > after)

    @property
    def names(self) -> frozenset[str]:
        """The current names, in lower case, of the copy's columns and of added columns."""
        return frozenset(self._numbering.numbers)

    def known(self, name: str) -> Column | None:
        """The copy's column with this current name."""
        return self._columns.get(self._number(name))

    def said(self, name: str) -> str:
        """The type in the last statement about this column; "" if there was none."""
        number = self._number(name)
        added = self._numbering.added.get(number)
        modified = self._numbering.modified.get(number)
        return modified[-1].text if modified else added.old if added else ""

    def name_now(self, column: str) -> str:
        """The current name, in lower case, of a column of the copy; "" if it was dropped."""
        old = {c.name: n for n, c in self._columns.items()}.get(column)
        return next((name for name, n in self._numbering.numbers.items() if n == old), "")

    def filled(self, column: Column) -> tuple[Column, bool]:
        """The column with the value of old rows in it, and whether that value is known."""
        number = self._number(column.name)
        step = self._numbering.added.get(number)
        if step is None:
            return replace(column, missing=None), True
        try:
            missing = missing_of(column, step.text)
        except ValueError:
            return replace(column, missing=None), False
        return replace(
            column, missing=missing
        ), missing is None or number not in self._numbering.modified

    def _number(self, name: str) -> int:
        return self._numbering.numbers.get(name.lower(), 0)


def _chosen(table: TableSchema, past: Past, numbers: Mapping[str, int]) -> Iterator[Column]:
    """The columns that rows have and the copy needs: the chosen ones, and those of the copy that
    were renamed or dropped after these rows. The description may be newer than the rows, so what
    the copy knows of a column, or its last statement, takes precedence."""
    chosen = {c.name: c for c in table.supported if c.name in numbers}
    for name in (*chosen, *(n for n in numbers if n not in chosen)):
        known, said = past.known(name), past.said(name)
        column = chosen.get(name, known)
        if column is None:
            continue
        if said and table.known is not None:
            column = replace(column, native=said)
        elif known is not None:
            column = known if known.wire == column.wire else replace(column, native=known.native)
        yield replace(column, name=name, ordinal=0)


def _key(table: TableSchema, past: Past, numbers: Mapping[str, int]) -> tuple[str, ...]:
    """The key, by the names that these rows use."""
    if table.known is None or set(table.key) <= set(numbers):
        return table.key
    sent = {name.lower(): name for name in numbers}
    names = [sent.get(past.name_now(column), "") for column in table.known.key]
    return tuple(names) if all(names) and names else table.key


def as_sent(column: Column, sent: MapColumn, charsets: Mapping[int, str]) -> Column:
    """The chosen column with the type that the log has for it. If that is its own type, the column
    is unchanged."""
    zero = column.wire.partition("_")[2] if "_" in column.wire else "null"
    kind, wire = sent_type(sent, charsets, zero if zero in ("text", "fail") else "null")
    if wire == column.wire and kind == column.type:
        return column
    if _is_same(column, sent, kind, wire):
        return column
    return replace(column, type=kind, wire=wire)


def _is_same(column: Column, sent: MapColumn, kind: LogicalType, wire: str) -> bool:
    """Whether the types look alike in the log, so that the catalog's type applies."""
    fixed = {"uuid": 16, "inet6": 16, "inet4": 4}
    if column.wire in fixed:
        return sent.kind == STRING and sent.meta == fixed[column.wire] and wire == "bytes"
    if column.wire == "json_text":
        return wire.startswith("text:utf8mb4") and sent.kind in BLOBS
    if isinstance(kind, String) and isinstance(column.type, String):
        return wire == column.wire
    return False


def sent_type(column: MapColumn, charsets: Mapping[int, str], zero_dates: str) -> Known:
    """The neutral type and the wire word of a column from the log alone. ValueError if its labels
    are damaged."""
    kind, meta = column.kind, column.meta
    if kind in INTEGER_WIRES:
        word = ("u" if column.unsigned else "") + INTEGER_WIRES[kind]
        return INTEGER_TYPES[word], word
    if kind in CHARACTERS and kind not in (BLOB_COMPRESSED, VARCHAR_COMPRESSED):
        charset = (
            "binary" if column.collation == BINARY_COLLATION else charsets.get(column.collation)
        )
        if charset is None:
            return Unsupported(f"text of collation {column.collation}"), ""
        return text(charset)
    if kind in (DATE, NEWDATE):
        return moment("date", 0, zero_dates)
    if kind in (DATETIME2, TIMESTAMP2):
        return moment("datetime" if kind == DATETIME2 else "timestamp", meta, zero_dates)
    simple: dict[int, Known] = {
        YEAR: (Int(16), "year"),
        FLOAT: (Float(32), "float"),
        DOUBLE: (Float(64), "double"),
        TIME2: (String(), "time"),
        JSON: (Json(), "json"),
        GEOMETRY: (Bytes(), "geometry"),
        VECTOR: (Array(Float(32)), "vector"),
    }
    if kind == NEWDECIMAL:
        return decimal(meta & 0xFF, meta >> 8)
    if kind == BIT:
        return bit((meta >> 8) * 8 + (meta & 0xFF))
    if kind in (ENUM, SET):
        charset = _label_charset(column, charsets)
        if not has_labels(charset):
            return Unsupported(f"labels in {charset}"), ""
        # A SET's labels are not part of its type. They are read here so that damaged ones raise.
        texts = label_texts(column, charsets)
        return (Enum(texts), "enum") if kind == ENUM else (String(), "set")
    return simple.get(kind, (Unsupported(f"type {kind}"), ""))


def label_texts(column: MapColumn, charsets: Mapping[int, str]) -> tuple[str, ...]:
    """The labels of an ENUM or SET, as text."""
    charset = _label_charset(column, charsets)
    if charset in UTF8 or charset == "binary":
        return tuple(label.decode() for label in column.labels)
    decode = decoder_of(charset)
    return tuple(decode(label) for label in column.labels)


def _label_charset(column: MapColumn, charsets: Mapping[int, str]) -> str:
    return charsets.get(column.collation, "utf8mb4")


def code_of(column: Column, sent: MapColumn) -> int:
    """The kernel's code for the values of a column."""
    kind, wire = sent.kind, column.wire
    if kind in INTEGER_WIRES:
        return {1: k.INT1, 2: k.INT2, 3: k.INT3, 4: k.INT4, 8: k.INT8}[
            FIXED_BYTES[kind]
        ] + sent.unsigned * k.UNSIGNED
    base, _, tail = wire.partition("_")
    if base in ("date", "datetime", "timestamp"):
        tails = {"text": k.MOMENT_TEXT, "fail": k.MOMENT_FAIL, "any": 0}
        codes = {"date": k.DATE, "datetime": k.DATETIME, "timestamp": k.TIMESTAMP}
        return codes[base] + tails.get(tail, k.MOMENT_ZERO)
    if wire == "decimal":
        return k.DECIMAL
    if wire == "bytes" and kind == STRING:
        return k.PADDED
    return {
        "decimal_text": k.DECIMAL_TEXT, "float": k.FLOAT, "double": k.DOUBLE, "bit": k.BIT,
        "year": k.YEAR,
        "time": k.TIME, "bytes": k.BYTES, "json": k.BYTES, "json_text": k.TEXT,
        "geometry": k.GEOMETRY,
        "enum": k.ENUM, "set": k.SET, "uuid": k.UUID, "inet4": k.INET4, "inet6": k.INET6,
        "vector": k.VECTOR,
    }.get(wire, k.TEXT)  # fmt: skip


def _version(sent: Iterable[MapColumn], schema: TableSchema) -> str:
    reported = {
        "map": [
            [c.name, c.kind, c.meta, c.unsigned, c.collation, [v.hex() for v in c.labels]]
            for c in sent
        ],
        "columns": [[c.name, type_to_json(c.type), c.wire] for c in schema.columns],
        "key": schema.key,
        **({"upto": schema.upto} if schema.steps else {}),
        **({"filter": schema.filter} if schema.filter else {}),
    }
    return hashlib.sha256(json.dumps(reported, sort_keys=True).encode()).hexdigest()[:16]
