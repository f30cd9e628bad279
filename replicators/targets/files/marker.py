"""The marker file: it names the owner of a table's folder."""

from __future__ import annotations

import json
from dataclasses import dataclass

from replicators.connectors import files
from replicators.connectors.model.schema import TableId
from replicators.targets.files import layout


@dataclass(frozen=True, slots=True)
class Marker:
    """The folder's owner, its table, and the generation that is being written."""

    replicator: str
    table: TableId
    generation: int

    def write(self, folder: str, form: str, bucket_seconds: int) -> None:
        """Write the marker into the table's folder. Raises OSError."""
        reported = {
            "replicator": self.replicator,
            "schema": self.table.schema,
            "table": self.table.name,
            "generation": self.generation,
            "format": form,
            "bucket_seconds": bucket_seconds,
        }
        files.publish(f"{folder}/{layout.MARKER}", json.dumps(reported, indent=1).encode())


def read_marker(folder: str) -> Marker | None:
    """The marker in a table's folder; None if it has none. Raises OSError."""
    text = files.read_if_there(f"{folder}/{layout.MARKER}")
    if text is None:
        return None
    reported = json.loads(text)
    return Marker(
        reported["replicator"],
        TableId(reported["schema"], reported["table"]),
        reported["generation"],
    )


def is_used(folder: str) -> bool:
    """Whether the folder holds anything except leftovers of an interrupted attempt. Raises
    OSError."""
    names = [path.rpartition("/")[2] for path, _ in files.listed(folder)]
    return bool(files.folders(folder)) or any(n[:1] != "." for n in names)
