"""What a line found, and how it is shown: the table on the screen, results.json, machine.json, docs/benchmarks.md."""

from __future__ import annotations

import json
import os
import platform
import subprocess
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from importlib.metadata import version
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
RESULTS = Path(__file__).with_name("results.json")
MACHINE = Path(__file__).with_name("machine.json")
PAGE = ROOT / "docs" / "benchmarks.md"
PACKAGES = (
    "pyspark",
    "pyarrow",
    "numba",
    "psycopg",
    "pyiceberg",
    "deltalake",
)
PARTS = frozenset({"-p50", "-p99", "-dlt", "-scattered"})
"""What a line may find beside its own figure."""
SHAPE = ("line", "unit", "ours", "peers", "ratio", "target", "checked")


@dataclass(frozen=True, slots=True)
class Peer:
    """Something to compare with, measured in the same run."""

    name: str
    value: float


@dataclass(frozen=True, slots=True)
class Result:
    """One line of the table. `target` is for the ratio where there is one, otherwise for `ours`; `at_most` says on which
    side of it the good ones lie. `checked`: the rows were compared and were right. `note`: what bounds it."""

    line: str
    unit: str
    ours: float
    target: float
    peers: tuple[Peer, ...] = ()
    ratio: float | None = None
    at_most: bool = False
    checked: bool = False
    note: str = ""

    @property
    def reached(self) -> bool:
        """Whether the target is met, by rows that were right."""
        value = self.ours if self.ratio is None else self.ratio
        return self.checked and (value <= self.target if self.at_most else value >= self.target)


def load() -> tuple[float, ...]:
    """The machine's load averages now."""
    return tuple(round(x, 2) for x in os.getloadavg())


def machine() -> dict[str, Any]:
    """What the figures were measured on."""
    lines = Path("/proc/cpuinfo").read_text().splitlines() if Path("/proc/cpuinfo").exists() else []
    names = [line.split(":", 1)[1].strip() for line in lines if line.startswith("model name")]
    pages = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    return {
        "processor": names[0] if names else platform.processor(),
        "cores": os.cpu_count(),
        "memory_gib": round(pages / 2**30, 1),
        "system": f"{platform.system()} {platform.release()}",
        "versions": {
            "python": platform.python_version(),
            "java": _java(),
            **{name: version(name) for name in PACKAGES},
        },
    }


def _java() -> str:
    found = subprocess.run(["java", "-version"], check=False, capture_output=True, text=True)
    return found.stderr.splitlines()[0] if found.stderr else "unknown"


def record(results: Sequence[Result], facts: dict[str, Any]) -> None:
    """Put the lines into results.json, in place of what was known of them, and `facts` beside them."""
    known = {r["line"]: r for r in _read(RESULTS, [])}
    notes = _read(MACHINE, {})
    lines = dict(notes.get("lines", {}))
    for result in results:
        known[result.line] = {k: v for k, v in asdict(result).items() if k in SHAPE}
        lines[result.line] = {
            "reached": result.reached,
            "at_most": result.at_most,
            "note": result.note,
            "measured_at": datetime.now(UTC).isoformat(timespec="seconds"),
            **facts,
        }
    ordered = sorted(known.values(), key=lambda r: _place(str(r["line"])))
    RESULTS.write_text(json.dumps(ordered, indent=1) + "\n")
    MACHINE.write_text(json.dumps({**machine(), "lines": lines}, indent=1) + "\n")
    PAGE.write_text(_page(ordered, json.loads(MACHINE.read_text())))


def _read(path: Path, empty: Any) -> Any:
    return json.loads(path.read_text()) if path.exists() else empty


def _place(line: str) -> tuple[int, str]:
    from benchmarks import LINES

    order = list(LINES)
    at = [n for n, name in enumerate(order) if line == name or line.startswith(f"{name}-")]
    return (at[-1] if at else len(order), line)


def _number(value: float | None) -> str:
    if value is None:
        return "-"
    return f"{value:,.0f}" if abs(value) >= 1000 else f"{value:,.2f}"


HEADS = ("line", "unit", "ours", "peer", "ratio", "target", "reached", "rows right")


def cells(row: dict[str, Any], fact: dict[str, Any]) -> tuple[str, ...]:
    """One line of the table, as text."""
    peers = ", ".join(f"{p['name']} {_number(p['value'])}" for p in row["peers"]) or "-"
    side = "<=" if fact.get("at_most") else ">="
    return (
        row["line"],
        row["unit"],
        _number(row["ours"]),
        peers,
        _number(row["ratio"]),
        f"{side} {_number(row['target'])}",
        "yes" if fact.get("reached") else "NO",
        "yes" if row["checked"] else "NO",
    )


def table(lines: Iterable[str]) -> str:
    """The known figures of these lines, for the screen."""
    wanted = list(lines)
    facts = _read(MACHINE, {}).get("lines", {})
    rows = [r for r in _read(RESULTS, []) if _is_of(r["line"], wanted)]
    text = [HEADS, *(cells(r, facts.get(r["line"], {})) for r in rows)]
    widths = [max(len(line[n]) for line in text) for n in range(len(HEADS))]
    shown = [
        "  ".join(c.ljust(w) for c, w in zip(line, widths, strict=True)).rstrip() for line in text
    ]
    shown += [
        f"{r['line']}: {note}" for r in rows if (note := facts.get(r["line"], {}).get("note"))
    ]
    return "\n".join(shown)


def _is_of(line: str, wanted: Sequence[str]) -> bool:
    return any(line == name or line.removeprefix(name) in PARTS for name in wanted)


def _memory(fact: dict[str, Any]) -> str:
    """The most that everything of a line used at a time, where it was measured."""
    return f" Memory of all of it at its peak: {fact['memory']}." if "memory" in fact else ""


def _page(rows: Sequence[dict[str, Any]], known: dict[str, Any]) -> str:
    facts = known["lines"]
    text = [
        "# Benchmarks",
        "",
        "Written by `make bench`; `python -m benchmarks LINE` measures one line again. Ours and its peers take turns in the",
        "same run, the figures are medians, and the rows are compared afterwards. `rows right` NO means that the figure",
        "counts for nothing.",
        "",
        f"Machine: {known['processor']}, {known['cores']} cores, {known['memory_gib']} GiB, {known['system']}.",
        "",
        "Versions: " + ", ".join(f"{k} {v}" for k, v in known["versions"].items()) + ".",
        "",
        "| " + " | ".join(HEADS) + " |",
        "|" + "---|" * len(HEADS),
        *("| " + " | ".join(cells(r, facts.get(r["line"], {}))) + " |" for r in rows),
        "",
        "## What bounds them",
        "",
    ]
    for row in rows:
        fact = facts.get(row["line"], {})
        load_then = ", ".join(str(x) for x in fact.get("load_before", ()))
        text.append(
            f"- **{row['line']}** ({fact.get('measured_at', '')}, load before it {load_then}, "
            f"scale {fact.get('scale', 1)}): {fact.get('note') or 'nothing to say.'}{_memory(fact)}"
        )
    return "\n".join(text) + "\n"
