"""Paths and names of files. Names of changes sort in the order of the changes. Accesses no file
system.

<location>/<schema>.<table>/                   the table's folder
    _table.json                                the table's owner
    g000001/                                   a generation: one copy of the table
        _resolved.json                         the last mark: its copy is whole
        copy-<sequence>/...                    the rows as they were at this sequence
            _whole.json                        this later copy counts
        changes/<first>-<last>-<committed>-<ended>-<rows>-<lane and part>-<try>.arrow
"""

from __future__ import annotations

from dataclasses import dataclass

from replicators.connectors.locations import plain
from replicators.connectors.model.schema import TableId
from replicators.connectors.pulling import Part

MARKER = "_table.json"
RESOLVED = "_resolved.json"
WHOLE = "_whole.json"
CHANGES = "changes"
COPY = "copy-"
ENDING = ".arrow"


def table_folder(location: str, table: TableId) -> str:
    """The folder of a table."""
    return f"{location}/{plain(table.schema)}.{plain(table.name)}"


def generation_name(generation: int) -> str:
    """The name of a generation's folder."""
    return f"g{generation:06d}"


def is_generation(name: str) -> bool:
    """Whether a folder with this name holds a generation."""
    return name[:1] == "g" and name[1:].isascii() and name[1:].isdecimal()


def copy_name(sequence: int) -> str:
    """The name of the folder of a copy."""
    return f"{COPY}{sequence:019d}"


@dataclass(frozen=True, slots=True)
class Name:
    """What a part's name says. `committed` and `ended` are the first and the last commit
    time, in microseconds since the epoch. Of a copy, `first`
    is the lane's number, so that the files of a lane that comes again are found."""

    first: int
    last: int
    committed: int
    ended: int
    rows: int
    number: int
    attempt: str

    def __str__(self) -> str:
        return (
            f"{self.first:019d}-{self.last:019d}-{self.committed:016d}-{self.ended:016d}-"
            f"{self.rows:010d}-{self.number:06d}-{self.attempt}{ENDING}"
        )


def part_of(path: str, size: int) -> Part | None:
    """The part at this path; None where the file is no part."""
    name = path.rpartition("/")[2]
    words = name.removesuffix(ENDING).split("-")
    if not name.endswith(ENDING) or len(words) != 7 or not all(map(str.isdecimal, words[:6])):
        return None
    first, last, committed, ended, rows = map(int, words[:5])
    return Part(path, first, last, rows, size, committed / 1e6, ended / 1e6)


def in_order(parts: list[Part]) -> tuple[Part, ...]:
    """The parts by sequence, without those that lie within another: they were joined. A part that
    begins within the one before it has the same rows there."""
    found: list[Part] = []
    for part in sorted(parts, key=lambda p: (p.first, -p.last)):
        if not found or part.last > found[-1].last:
            found.append(part)
    return tuple(found)
