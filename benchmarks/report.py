"""The result of a line, and how results are kept: results.json for programs, machine.json with the
circumstances."""

from __future__ import annotations

import json
import os
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from benchmarks import versions
from benchmarks.page import described, page, place_of
from benchmarks.picture import picture

ROOT = Path(__file__).resolve().parents[1]
RESULTS = Path(__file__).with_name("results.json")
MACHINE = Path(__file__).with_name("machine.json")
PAGE = ROOT / "docs" / "benchmarks.md"
PICTURE = ROOT / "docs" / "benchmarks.svg"
SCHEMA = ("line", "unit", "ours", "peers", "ratio", "target", "checked", "memory_gib")


@dataclass(frozen=True, slots=True)
class Peer:
    """A peer's figure, measured in the same run. Where it was not measured, `missing` says why and
    `value` is None."""

    name: str
    value: float | None
    memory_gib: float | None = None
    missing: str = ""


@dataclass(frozen=True, slots=True)
class Result:
    """One line of the table. `target` applies to the ratio, or to `ours` where it `is_absolute`;
    None where there is none. `at_most`: values up to the target are good, otherwise values from it
    on. `checked`: the rows were compared and were right. `note`: what limits the figure.
    `memory_gib` is our peak, without the server and the peers."""

    line: str
    unit: str
    ours: float
    target: float | None
    peers: tuple[Peer, ...] = ()
    ratio: float | None = None
    at_most: bool = False
    is_absolute: bool = False
    checked: bool = False
    note: str = ""
    memory_gib: float | None = None

    @property
    def reached(self) -> bool:
        """Whether the target is met, with rows that were right. Never where a ratio has no peer."""
        value = self.ours if self.is_absolute else self.ratio
        if self.target is None or value is None:
            return self.checked and self.target is None
        return self.checked and (value <= self.target if self.at_most else value >= self.target)

    @property
    def row(self) -> dict[str, Any]:
        """The form in results.json, without values that a peer does not report."""
        told = {k: v for k, v in asdict(self).items() if k in SCHEMA}
        peers = [
            {k: v for k, v in asdict(p).items() if k in ("name", "value") or v} for p in self.peers
        ]
        return {**told, "peers": peers}


def result_of(told: dict[str, Any]) -> Result:
    """A result that another process wrote."""
    return Result(**{**told, "peers": tuple(Peer(**p) for p in told["peers"])})


def load() -> tuple[float, ...]:
    """The machine's load averages now."""
    return tuple(round(x, 2) for x in os.getloadavg())


def rows() -> list[dict[str, Any]]:
    """The known results of all lines."""
    return list(_read(RESULTS, []))


def notes() -> dict[str, Any]:
    """The machine, the versions, and each line's circumstances and failure."""
    return {"lines": {}, "failed": {}, **_read(MACHINE, {})}


def record(line: str, results: Sequence[Result], facts: dict[str, Any]) -> None:
    """Write a line's results into the files in place of its older ones, with `facts` beside
    them."""
    known = {r["line"]: r for r in rows()}
    told = notes()
    machine = versions.machine(told)
    told["failed"].pop(line, None)
    for result in results:
        known[result.line] = result.row
        told["lines"][result.line] = {
            "reached": result.reached,
            "at_most": result.at_most,
            "note": result.note,
            "measured_at": _now(),
            "machine": described(machine),
            **facts,
        }
    _write(list(known.values()), told, machine)


def record_failure(line: str, error: str) -> None:
    """Write into the files that a line could not be measured; its older results stay."""
    told = notes()
    told["failed"][line] = {"error": error, "at": _now()}
    _write(rows(), told, versions.machine(told))


def rewrite() -> None:
    """Write page and picture again from the known results. They name the machine of the
    measurement, not the present one."""
    _replace(PAGE, page(rows(), notes()))
    _replace(PICTURE, picture(rows()))


def _write(found: list[dict[str, Any]], told: dict[str, Any], machine: dict[str, Any]) -> None:
    ordered = sorted(found, key=lambda r: place_of(str(r["line"])))
    _replace(RESULTS, json.dumps(ordered, indent=1) + "\n")
    for fact in told["lines"].values():
        fact.setdefault("machine", described(told if "processor" in told else machine))
    _replace(MACHINE, json.dumps({**told, **machine}, indent=1) + "\n")
    rewrite()


def _replace(path: Path, text: str) -> None:
    """Replace a file as a whole or not at all: a full disk or Ctrl-C must not destroy other lines'
    results."""
    part = path.with_name(f"{path.name}.part")
    try:
        part.write_text(text)
        part.replace(path)
    finally:
        part.unlink(missing_ok=True)


def _now() -> str:
    return datetime.now(UTC).isoformat(timespec="seconds")


def _read(path: Path, empty: Any) -> Any:
    return json.loads(path.read_text()) if path.exists() else empty
