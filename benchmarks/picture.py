"""The chart docs/benchmarks.svg: bars of our figures, of the peers', and the limit. The same rows
give the same text."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any
from xml.sax.saxutils import escape

from benchmarks import LINES

SHOWN = (
    "capture", "binlog-decode", "changes-postgresql", "changes-mysql", "snapshot", "snapshot-mysql",
    "merge-iceberg", "merge-delta", "backlog", "lag-p50", "lag-p99", "lag-mysql-p50",
    "lag-mysql-p99", "postgresql-copy", "postgresql-backlog", "postgresql-lag-p50",
    "postgresql-lag-p99", "bigquery-copy", "bigquery-backlog", "memory",
)  # fmt: skip
BESIDE = ("-dlt", "-others")
"""Lines that measure further peers for the same figure of ours."""
LIMITS_OURS = ("binlog-decode", "lag-", "postgresql-lag-", "memory")
"""Lines whose target is a limit of our own figure; the target of the others is a ratio to a
peer."""
LESS_IS_BETTER = frozenset({"s", "s a merge", "GiB"})
WIDTH, LABELS, BARS, ROW, TITLE, GAP = 960, 290, 500, 18, 24, 14
STYLE = """text{font:12px system-ui,sans-serif;fill:#1f2933}.muted{fill:#5b6672}.name{font-weight:600;font-size:13px}
.page{fill:#fff}.ours{fill:#2563eb}.peer{fill:#b8c2cc}.limit{stroke:#b45309;stroke-width:2;stroke-dasharray:4 3}.told{fill:#b45309}
@media (prefers-color-scheme:dark){text{fill:#e5e9ee}.muted{fill:#a3adb8}.page{fill:#14181d}.ours{fill:#6ea0ff}.peer{fill:#566270}
.limit{stroke:#f0a94a}.told{fill:#f0a94a}}"""  # noqa: E501


def picture(rows: Sequence[dict[str, Any]]) -> str:
    """The whole picture as SVG text."""
    known = {r["line"]: r for r in rows}
    panels, y = [], GAP
    for line in SHOWN:
        if line in known:
            panel, height = _panel(known[line], _peers(line, known), y)
            panels.append(panel)
            y += height + GAP
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{WIDTH}" height="{y}" viewBox="0 0 '
        f'{WIDTH} {y}" role="img">\n'
        "<title>Figures of ours, of other programs, and the "
        f"limits</title>\n<style>{STYLE}</style>\n"
        f'<rect class="page" width="{WIDTH}" height="{y}"/>\n' + "\n".join(panels) + "\n</svg>\n"
    )


def limit_of(row: dict[str, Any]) -> float | None:
    """The target in the unit of our figure; None where there is no target or nothing to compare
    with."""
    target, ratio = row.get("target"), row.get("ratio")
    if target is None or row["line"].startswith(LIMITS_OURS):
        return None if target is None else float(target)
    if not ratio:
        return None
    if row["unit"] in LESS_IS_BETTER:
        return float(row["ours"]) * float(ratio) / float(target)
    return float(row["ours"]) / float(ratio) * float(target)


def _peers(line: str, known: dict[str, dict[str, Any]]) -> list[dict[str, Any]]:
    found = [known[name] for name in (line, *(line + b for b in BESIDE)) if name in known]
    return [p for row in found for p in row["peers"] if p.get("value") is not None]


def _panel(row: dict[str, Any], peers: Sequence[dict[str, Any]], y: int) -> tuple[str, int]:
    limit = limit_of(row)
    values = [("ours", "ours", float(row["ours"]))]
    values += [("peer", str(p["name"]), float(p["value"])) for p in peers]
    most = max([v for *_, v in values] + ([limit] if limit else [])) or 1.0
    height = TITLE + ROW * len(values)
    text = [
        f'<text x="16" y="{y + 14}"><tspan class="name">{escape(str(row["line"]))}</tspan>'
        f'<tspan class="muted" dx="8">{escape(_told(row))}</tspan></text>'
    ]
    for n, (kind, name, value) in enumerate(values):
        top = y + TITLE + n * ROW
        wide = max(1.0, value / most * BARS)
        text.append(
            f'<text x="{LABELS - 8}" y="{top + 11}" text-anchor="end">{escape(name)}</text>'
            f'<rect class="{kind}" x="{LABELS}" y="{top + 1}" width="{wide:.1f}" '
            f'height="{ROW - 5}" rx="2"/>'
            f'<text x="{LABELS + wide + 6:.1f}" y="{top + 11}">{_short(value)}</text>'
        )
    if limit:
        x = LABELS + limit / most * BARS
        text.append(
            f'<line class="limit" x1="{x:.1f}" x2="{x:.1f}" y1="{y + TITLE - 4}" '
            f'y2="{y + height}"/>'
            f'<text class="told" x="{WIDTH - 16}" y="{y + 14}" text-anchor="end">{_side(row)} '
            f"{_short(limit)}</text>"
        )
    return "\n".join(text), height


def _told(row: dict[str, Any]) -> str:
    name = max((n for n in LINES if row["line"].startswith(n)), key=len, default="")
    part = {"-p50": ", median", "-p99": ", 99 of 100"}.get(row["line"].removeprefix(name), "")
    about = LINES[name][1] if name else ""
    return f"{about}{part}; {row['unit']}"


def _side(row: dict[str, Any]) -> str:
    return "limit: at most" if row["unit"] in LESS_IS_BETTER else "limit: at least"


def _short(value: float) -> str:
    for size, letter in ((1e6, "M"), (1e3, "k")):
        if abs(value) >= size:
            return f"{value / size:.3g} {letter}"
    return f"{value:.3g}"
