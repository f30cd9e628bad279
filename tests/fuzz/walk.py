"""One run of the fuzz, inside the process where numba checks every index: its figures, or an error
that names the event."""

from __future__ import annotations

import argparse
import sys
import time
from collections import Counter
from typing import Any

import numpy as np

from replicators.connectors.log import DecodedTable
from tests.fuzz import binlog, comparing, pgoutput, recording, segments
from tests.fuzz import mutating as m

BATCH = 100_000


class Violation(AssertionError):
    """What no input may bring about."""


def walk(given: argparse.Namespace) -> dict[str, Any]:
    """Mutate what was recorded of the servers; the figures."""
    is_binlog = given.what == "mysql"
    names = ("mariadb", "mysql") if is_binlog else ("postgresql",)
    form: Any = binlog if is_binlog else pgoutput
    decode = _decoder(is_binlog=is_binlog)
    outcomes, whole, compared = np.zeros(len(m.NAMES), np.int64), Counter[str](), 0
    began = time.monotonic()
    found = [(s, recording.body_of(s)) for name in names for s in recording.read(name)]
    cases = [(case, s) for s, body in found for case in form.cases(s, body)]
    if is_binlog:
        plain = [_decoded(decode, s, body) for s, body in found]
        found += [(s, recording.compressed(s, body)) for s, body in found]
        assert plain * 2 == [_decoded(decode, s, body) for s, body in found]
    for number, (segment, body) in enumerate(found):
        whole += segments.walk(
            decode, segment, body, given.segments, given.seed + number, is_binlog=is_binlog
        )
    _say(f"{given.segments * len(found)} segments, {time.monotonic() - began:.0f} s")
    done, batches = 0, 0
    while done < given.events:
        case, segment = cases[batches % len(cases)]
        count = min(BATCH, given.events - done)
        seed = given.seed * 1_000_003 + batches
        keeps = given.samples if batches < len(cases) else 0
        violation, at, seen, samples = form.run(case, count, seed, keeps)
        if violation:
            raise Violation(f"{m.VIOLATIONS[violation]}: {case.name}, event {at} of seed {seed}")
        outcomes += seen
        compared += comparing.compare(case, segment, samples, decode, is_binlog=is_binlog)
        done, batches = done + count, batches + 1
        _say(f"{done} events, {time.monotonic() - began:.0f} s")
    return {
        "seed": given.seed,
        "events": int(outcomes.sum() - outcomes[m.UNCHANGED]),
        "outcomes": dict(zip(m.NAMES, outcomes.tolist(), strict=True)),
        "segments": dict(whole),
        "values_compared": compared,
        "seconds": round(time.monotonic() - began),
    }


def _decoded(decode: Any, segment: dict[str, Any], body: np.ndarray) -> list[Any]:
    """The values of a segment that nobody touched, without what says where they lay."""
    head = {"context": segment["context"], "tables": segment["tables"]}
    parts = list(decode(head, body, 1))
    assert parts and all(isinstance(p, DecodedTable) for p in parts), parts
    return [p.changes.drop(["_position", "_transaction"]).to_pylist() for p in parts]


def _decoder(*, is_binlog: bool) -> Any:
    if is_binlog:
        from replicators.sources.mysql.decode import decode as of_binlog

        return of_binlog
    from replicators.sources.postgresql.decode import decode as of_pgoutput

    return of_pgoutput


def _say(text: str) -> None:
    sys.stderr.write(text + "\n")


__all__ = ["Violation", "walk"]
