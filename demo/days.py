"""Two days of a made-up data set, to try out comparisons: five keys that are UUIDs, ten numbers.

    python -m demo.days var/days

writes `data/day1`, `data/day2` and `config.yaml` into that folder. Of the rows of the first day, a
fifth is deleted on the second and replaced by new ones, two fifths are updated, and two fifths stay
as they are.
"""

from __future__ import annotations

import argparse
import random
import uuid
from collections.abc import Iterator, Sequence
from pathlib import Path

import pyarrow as pa
import pyarrow.csv as pc

ROWS = 10_000
KEYS = tuple(f"key{n}" for n in range(1, 6))
VALUES = tuple(f"value{n}" for n in range(1, 11))
_LIMIT = 1_000_000
Row = tuple[str | int, ...]

CONFIG = """\
kind: full
format: {form}
keys:
{keys}
non_keys:
{values}
current: {{{current}}}
history: {{{history}}}
{catalog}"""


def days(rows: int = ROWS, seed: int = 1) -> tuple[list[Row], list[Row]]:
    """The rows of both days: keys, then values."""
    numbers = random.Random(seed)
    first = [_row(numbers) for _ in range(rows)]
    kept, updated = first[rows // 5 :], rows * 2 // 5
    second = [_updated(row, numbers) for row in kept[:updated]] + kept[updated:]
    second += [_row(numbers) for _ in range(rows - len(kept))]
    numbers.shuffle(second)
    return first, second


def _row(numbers: random.Random) -> Row:
    keys = (str(uuid.UUID(int=numbers.getrandbits(128), version=4)) for _ in KEYS)
    return (*keys, *(numbers.randrange(_LIMIT) for _ in VALUES))


def _updated(row: Row, numbers: random.Random) -> Row:
    """The row with another number in one place."""
    at = numbers.randrange(len(KEYS), len(row))
    return (*row[:at], int(row[at]) + 1, *row[at + 1 :])


def write_csv(rows: Sequence[Row], folder: Path) -> None:
    """Write the rows as one CSV file into the folder."""
    folder.mkdir(parents=True, exist_ok=True)
    table = pa.table(dict(zip((*KEYS, *VALUES), _columns(rows), strict=True)))
    pc.write_csv(table, folder / "part-0.csv")


def _columns(rows: Sequence[Row]) -> Iterator[list[str | int]]:
    for column in zip(*rows, strict=True):
        yield list(column)


def config(folder: Path, form: str) -> str:
    """The text of a configuration whose results lie in the folder, too."""
    root = folder.absolute()
    if form == "iceberg":
        current, history = "table: shop.current", "table: shop.history"
        catalog = (
            f"catalog: {{type: jdbc, uri: 'sqlite:///{root}/catalog.db', "
            f"warehouse: {root}/warehouse}}\n"
        )
    else:
        current, history, catalog = f"path: {root}/current", f"path: {root}/history", ""
    return CONFIG.format(
        form=form,
        keys="\n".join(f"  {k}: string" for k in KEYS),
        values="\n".join(f"  {v}: bigint" for v in VALUES),
        current=current,
        history=history,
        catalog=catalog,
    )


def main(arguments: Sequence[str] | None = None) -> None:
    """Write everything."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("folder", type=Path)
    parser.add_argument("--format", default="iceberg", choices=("iceberg", "delta", "parquet"))
    parser.add_argument("--rows", type=int, default=ROWS)
    asked = parser.parse_args(arguments)
    first, second = days(asked.rows)
    write_csv(first, asked.folder / "data" / "day1")
    write_csv(second, asked.folder / "data" / "day2")
    (asked.folder / "config.yaml").write_text(config(asked.folder, asked.format))


if __name__ == "__main__":
    main()
