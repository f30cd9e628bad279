"""The file that says whose a table's folder is."""

from __future__ import annotations

import json
from dataclasses import dataclass

from replicators.connectors import files
from replicators.connectors.model.schema import TableId
from replicators.targets.files import layout


@dataclass(frozen=True, slots=True)
class Marker:
    """Whose the folder is, of which table, and which generation is written."""

    replicator: str
    table: TableId
    generation: int

    def write(self, folder: str, form: str, bucket_seconds: int) -> None:
        """Put it into the table's folder; OSError."""
        told = {
            "replicator": self.replicator,
            "schema": self.table.schema,
            "table": self.table.name,
            "generation": self.generation,
            "format": form,
            "bucket_seconds": bucket_seconds,
        }
        files.publish(f"{folder}/{layout.MARKER}", json.dumps(told, indent=1).encode())


def read_marker(folder: str) -> Marker | None:
    """What a table's folder says; None where it says nothing. OSError."""
    text = files.read_if_there(f"{folder}/{layout.MARKER}")
    if text is None:
        return None
    told = json.loads(text)
    return Marker(told["replicator"], TableId(told["schema"], told["table"]), told["generation"])


def is_used(folder: str) -> bool:
    """Whether something lies in the folder but what a try that was cut off may have left.
    OSError."""
    names = [path.rpartition("/")[2] for path, _ in files.listed(folder)]
    return bool(files.folders(folder)) or any(n[:1] != "." for n in names)
