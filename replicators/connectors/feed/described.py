"""Messages that describe a table's schema, for a topic of schemas. One is sent before the first
message of each schema version."""

from __future__ import annotations

import json
from typing import Any

from replicators.connectors.feed.avro_schema import key_schema, value_schema
from replicators.connectors.feed.options import AVRO, KEY_ONLY, FeedOptions
from replicators.connectors.model.schema import TableSchema
from replicators.connectors.model.types import type_to_json


def schema_message(
    schema: TableSchema, options: FeedOptions, *, topic: str, after: int
) -> tuple[bytes, bytes]:
    """Key and value in JSON. The schema is that of the table's messages whose sequence is larger
    than `after`, until the next such message."""
    table = schema.source_id
    value: dict[str, Any] = {
        "schema": table.schema,
        "table": table.name,
        "topic": topic,
        "after": after,
        "columns": [
            {
                "name": c.name,
                "type": type_to_json(c.type),
                "native": c.native,
                "nullable": c.nullable,
            }
            for c in schema.supported
        ],
        "key": list(schema.key),
        "format": options.format,
    }
    if options.format == AVRO:
        if schema.key:
            value["key_schema"] = json.loads(key_schema(schema))
        if options.shape != KEY_ONLY:
            value["value_schema"] = json.loads(value_schema(schema, options))
    return _text([table.schema, table.name]), _text(value)


def _text(found: Any) -> bytes:
    return json.dumps(found, ensure_ascii=False, separators=(",", ":")).encode()
