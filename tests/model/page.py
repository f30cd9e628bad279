"""Makes docs/nemesis.md of the records that walks left: `python -m tests.model.page RECORDS >
docs/nemesis.md`."""

from __future__ import annotations

import json
import sys
from collections import Counter
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

ABOUT = """# Walks of the adversary

Made from the records of walks (`NEMESIS_REPORT=file make nemesis`, then `python -m tests.model.page file > docs/nemesis.md`); not edited by
hand.

A walk takes random steps, drawn from a seed, against a real source, a real run and a real lakehouse: transactions over eleven tables
(mirrors, soft delete, history, append, without a key, with a row filter, with values that don't fit), schema changes, tables that are
made, added, removed, copied again and rewound, pauses, kills at random moments and at each step of the order of writes, restarts and cuts
of the source, and times when the target's catalog can't be written. At each check it waits until everything is merged, then compares every
table with its source by `tests/model/checks.py`, which knows nothing of the engine. `SEED=... STEPS=... FORMAT=... make nemesis` repeats a
walk's steps; where the run is at each of them, time decides.

*Faults* are deaths of the run, pauses, cuts, restarts and outages. *Duplicates*: changes that the change log lists twice, of those captured
of two tables; a row that is twice in a copy ends the walk. *Lag*: what the pages show for the worst table, looked at each second, with the
time that a killed run needs to start again in it. *Level after*: the longest that a check had to wait, with copies made afresh in it.
"""  # noqa: E501
HEAD = """
| source | target | seed | steps | minutes | faults | deaths | checks | watermarks | duplicates | lag: median, 99 %, largest | level after | end |
|---|---|---|---|---|---|---|---|---|---|---|---|---|
"""  # noqa: E501


def line(walk: Mapping[str, Any]) -> str:
    """A walk's line of the table."""
    lags = ", ".join(f"{walk[f'lag_{n}_seconds']:.1f}" for n in ("median", "p99", "largest"))
    end = " ".join(walk["failure"].split())[:120].replace("|", "/") or "clean"
    cells = [
        walk["source"], walk["format"], walk["seed"], f"{walk['steps']:,} of {walk['asked']:,}",
        f"{walk['seconds'] / 60:.0f}", walk["faults"], walk["deaths"], walk["checks"],
        walk["watermarks"],
        f"{walk['duplicates_percent']:.3f} % of {walk['captured']:,}", f"{lags} s",
        f"{walk['largest_settle_seconds']:.0f} s", end,
    ]  # fmt: skip
    return f"| {' | '.join(map(str, cells))} |"


def page(walks: Iterable[Mapping[str, Any]]) -> str:
    """The page: a line for each walk, and how often each step was taken in all of them."""
    known = list(walks)
    counts: Counter[str] = Counter()
    for walk in known:
        counts.update(walk["counts"])
    taken = [f"{name} {counts[name]:,}" for name in sorted(counts)]
    refused = sum(w["rewinds_refused"] for w in known)
    rewound = (
        f"Rewinds done: {sum(w['rewound'] for w in known)}, refused with their reason: {refused}."
    )
    return "\n".join(
        [ABOUT + HEAD.rstrip(), *map(line, known), "", "## Steps taken, and what runs died of", "",
         ", ".join(taken) + ".", "", rewound, ""]
    )  # fmt: skip


if __name__ == "__main__":
    found = [
        json.loads(row) for name in sys.argv[1:] for row in Path(name).read_text().splitlines()
    ]
    sys.stdout.write(page(found))
