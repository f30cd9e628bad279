"""Messages as JSON text (`connectors.arrow.json_text`)."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from replicators.connectors.arrow import json_text
from replicators.connectors.arrow.images import Mask, unsent_names
from replicators.connectors.arrow.json_text import NULL, TEXT, concat, object_of, or_null
from replicators.connectors.feed.options import (
    DEBEZIUM,
    DIFF,
    NUMBER,
    FeedOptions,
    Origin,
)
from replicators.connectors.feed.rows import Image, Rows, fact_name
from replicators.connectors.model.changes import Op
from replicators.connectors.model.schema import Column, TableSchema
from replicators.connectors.model.types import Array, Int, Json, String, Timestamp

_LETTERS = pa.array(['"c"', '"u"', '"d"', '"t"', '"r"'], TEXT)
"""Debezium's word for each `Op`."""


@dataclass(frozen=True, slots=True)
class Texts:
    """Writes the keys and values of one table's rows as JSON."""

    schema: TableSchema
    options: FeedOptions
    origin: Origin

    def keys(self, rows: Rows) -> pa.Array:
        """A JSON array of the key's values; NULL for a TRUNCATE and without a key."""
        if not rows.key:
            return pa.nulls(len(rows), TEXT)
        parts: list[Any] = []
        for name, values in rows.key.items():
            text = or_null(self._value(values, self.schema.column(name)))
            parts += [",", text] if parts else [text]
        whole = concat("[", *parts, "]")
        is_all = rows.op == int(Op.TRUNCATE)
        return pc.if_else(pa.array(is_all), pa.scalar(None, TEXT), whole) if is_all.any() else whole

    def values(self, rows: Rows) -> pa.Array:
        """The value of each row; NULL where the envelope has none for it."""
        shape = self.options.shape
        if shape == DEBEZIUM:
            return self._debezium(rows)
        return self._diff(rows) if shape == DIFF else self._plain(rows)

    def _plain(self, rows: Rows) -> pa.Array:
        more = {}
        if self.options.updated:
            more[fact_name("updated", self.schema, self.options)] = _time(rows.committed_at)
        text = self._object(rows.after, len(rows), more)
        text = pc.if_else(pa.array(rows.after.is_none), pa.scalar(None, TEXT), text)
        return self._with_truncates(rows, text)

    def _diff(self, rows: Rows) -> pa.Array:
        facts = {"after": self._image(rows.after), "before": self._image(rows.before)}
        if self.options.updated:
            facts["updated"] = _time(rows.committed_at)
        absent = {"before": rows.no_before} if rows.no_before.any() else {}
        return self._with_truncates(rows, object_of(list(facts.items()), absent, len(rows)))

    def _with_truncates(self, rows: Rows, text: pa.Array) -> pa.Array:
        is_all = rows.op == int(Op.TRUNCATE)
        if not is_all.any():
            return text
        name = fact_name("operation", self.schema, self.options)
        facts = {name: _same('"truncate"', len(rows))}
        if self.options.shape == DIFF:
            null = _same("null", len(rows))
            facts = {"after": null, "before": null, **facts}
        if self.options.updated:
            facts[fact_name("updated", self.schema, self.options)] = _time(rows.committed_at)
        return pc.if_else(pa.array(is_all), object_of(list(facts.items()), {}, len(rows)), text)

    def _debezium(self, rows: Rows) -> pa.Array:
        micros = rows.committed_at.cast(pa.int64())
        millis = json_text.value(_floor_millis(micros), Int(64))
        sequence = json_text.value(rows.sequence, Int(64))
        is_read = pa.array(rows.op == int(Op.READ))
        table = self.schema.source_id
        same = {
            "connector": self.origin.connector,
            "name": self.origin.name,
            "db": self.origin.database,
            "schema": table.schema,
            "table": table.name,
        }
        fixed = json.dumps(same, ensure_ascii=False, separators=(",", ":"))[1:-1]
        source = concat(
            "{" + fixed + ',"ts_ms":', millis,
            ',"ts_us":', json_text.value(micros, Int(64)),
            ',"snapshot":', pc.if_else(is_read, _text('"true"'), _text('"false"')),
            ',"txId":', json_text.value(rows.transaction, Int(64)),
            ',"sequence":"', sequence,
            '"}',
        )  # fmt: skip
        facts = [
            ("before", self._image(rows.before)),
            ("after", self._image(rows.after)),
            ("source", source),
            ("op", _LETTERS.take(pa.array(rows.op.astype(np.int64)))),
            ("ts_ms", millis),
            ("transaction", _same("null", len(rows))),
        ]
        return object_of(facts, {}, len(rows))

    def _image(self, image: Image) -> pa.Array:
        """A JSON object for each image, `null` for none."""
        if image.is_none.all():
            return _same("null", len(image.is_none))
        text = self._object(image, len(image.is_none), {})
        return pc.if_else(pa.array(image.is_none), NULL, text) if image.is_none.any() else text

    def _object(self, image: Image, rows: int, more: dict[str, pa.Array]) -> pa.Array:
        left = image.left()
        fields = [
            (c.name, self._value(image.values[c.name], c))
            for c in self.schema.supported
            if c.name in image.values
        ]
        fields += more.items()
        unsent = {n: image.unsent[n] for n in image.values if n in left and n in image.unsent}
        if unsent:
            names = unsent_names(unsent, rows)
            fields.append(("_unsent", json_text.value(names, Array(String()))))
            lacks: Mask = names.is_null().to_numpy(zero_copy_only=False)
            left["_unsent"] = lacks
        return object_of(fields, left, rows)

    def _value(self, values: pa.Array, column: Column) -> pa.Array:
        is_document = self.options.shape != DEBEZIUM
        text = json_text.column_value(
            values,
            column,
            numbers=self.options.decimals == NUMBER,
            documents=is_document,
        )
        return _one_line(text) if is_document and _is_document(column) else text


def resolved_text(at: str) -> bytes:
    """The message which says that nothing older than a time can come any more."""
    return json.dumps({"resolved": at}).encode()


def _is_document(column: Column) -> bool:
    kind = column.type
    return isinstance(kind.of if isinstance(kind, Array) else kind, Json)


def _one_line(text: pa.Array) -> pa.Array:
    """JSON without line breaks: they can only lie between its tokens."""
    for mark in ("\n", "\r"):
        text = pc.replace_substring(text, mark, " ")
    return text


def _floor_millis(micros: pa.Array) -> pa.Array:
    return pa.array(np.floor_divide(micros.to_numpy(zero_copy_only=False), 1000))


def _time(values: pa.Array) -> pa.Array:
    return json_text.value(values, Timestamp(zone=True))


def _text(text: str) -> pa.Scalar:
    return pa.scalar(text, TEXT)


def _same(text: str, rows: int) -> pa.Array:
    return pa.repeat(_text(text), rows)
