"""Shows results: the table on the screen, and docs/benchmarks.md. A value that older results lack
is a dash."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from benchmarks import LINES

PARTS = frozenset({"-p50", "-p99", "-dlt", "-others", "-scattered", "-decode", "-snapshot"})
"""Suffixes of a line's additional figures."""
HEADS = (
    "line", "unit", "ours", "peer", "ratio", "target", "reached", "rows right",
    "memory at its peak, GiB",
)  # fmt: skip
OPENING = """# Benchmarks

Ours and its peers run one after the other on the same machine, beside the server that they read. `make bench` measures
all lines and writes this page; `python -m benchmarks LINE` measures one line again.

![Bars of ours and of other programs, and the limit of each line](benchmarks.svg)
"""  # noqa: E501
METHOD = """<details>
<summary>How it is measured</summary>

- Figures are medians of rounds. What warmed up does not count. Debezium, dlt, sling, ingestr, python-mysql-replication, a
  backlog, the lags, memory and growth run once.
- Rows are compared afterwards: ours, and those that Spark, dlt, sling, ingestr and PostgreSQL's own replication wrote. What
  is printed or copied undecoded is compared by its rows' number or its size. What Debezium and python-mysql-replication hand
  out is only counted.
- Lines into PostgreSQL have two servers with the same settings on the one machine. Lines into BigQuery have an emulator: its
  speed says nothing about BigQuery's, so the notes give the product's own part.
- `rows right` NO means that the figure counts for nothing.
- `ratio` says how many times better ours is than the peer, the best or the first one where there are several. The notes say
  where it is something else.
- The files of our change log are made durable. Positions are kept in memory, not in the application's database. Servers do
  not wait for their disk.
- Spark's JVM compiles in full, so that no peer is slowed. The lags, the backlog and the memory of ours alone are those of
  the engine as it ships, with C1 only.
- Memory is ours without the server's, all processes together, looked at once a second (a run's twice). Then comes the
  peer's at its peak, where it has a process of its own. A dash: not measured.
- Versions are those of the last measurement.
"""  # noqa: E501
GROUPS = (("versions", "Versions"), ("servers", "Servers"), ("peers", "Peers"))


def place_of(line: str) -> tuple[int, str]:
    """The sort key of a line in the table."""
    order = list(LINES)
    at = [n for n, name in enumerate(order) if line == name or line.startswith(f"{name}-")]
    return (at[-1] if at else len(order), line)


def number(value: float | None) -> str:
    """A number as text, or a dash."""
    if value is None:
        return "-"
    return f"{value:,.0f}" if abs(value) >= 1000 else f"{value:,.2f}"


def cells(row: dict[str, Any], fact: dict[str, Any]) -> tuple[str, ...]:
    """One line of the table, as text."""
    peers = [f"{p['name']} {p.get('missing') or number(p['value'])}" for p in row["peers"]]
    side = "<=" if fact.get("at_most") else ">="
    target = row.get("target")
    return (
        row["line"] + _smaller(fact),
        row["unit"],
        number(row["ours"]),
        ", ".join(peers) or "-",
        number(row.get("ratio")),
        "-" if target is None else f"{side} {number(target)}",
        "-" if target is None else "yes" if fact.get("reached") else "NO",
        "yes" if row["checked"] else "NO",
        _memory(row),
    )


def _smaller(fact: dict[str, Any]) -> str:
    """A mark beside the name of a figure that was measured at less than the full load."""
    scale = fact.get("scale", 1)
    return "" if scale == 1 else f" (scale {scale:g})"


def _memory(row: dict[str, Any]) -> str:
    peers = [f"{p['name']} {p['memory_gib']:.2f}" for p in row["peers"] if p.get("memory_gib")]
    return ", ".join([number(row.get("memory_gib")), *peers])


def table(
    lines: Iterable[str], rows: Sequence[dict[str, Any]], facts: dict[str, Any],
    failed: dict[str, Any]
) -> str:  # fmt: skip
    """The table of the known results of these lines, for the screen."""
    wanted = list(lines)
    found = [r for r in rows if is_of(r["line"], wanted)]
    text = [HEADS, *(cells(r, facts.get(r["line"], {})) for r in found)]
    widths = [max(len(line[n]) for line in text) for n in range(len(HEADS))]
    shown = [
        "  ".join(c.ljust(w) for c, w in zip(line, widths, strict=True)).rstrip() for line in text
    ]
    shown += [
        f"{r['line']}: {note}" for r in found if (note := facts.get(r["line"], {}).get("note"))
    ]
    return "\n".join([*shown, *(_failure(line, failed[line]) for line in wanted if line in failed)])


def is_of(line: str, wanted: Sequence[str]) -> bool:
    """Whether a result belongs to one of these lines."""
    return any(line == name or line.removeprefix(name) in PARTS for name in wanted)


def _failure(line: str, failure: dict[str, str]) -> str:
    return f"{line}: NOT MEASURED ({failure['at']}): {failure['error']}"


def described(known: dict[str, Any]) -> str:
    """The machine in a few words."""
    told = (known.get(k, "-") for k in ("processor", "cores", "memory_gib", "system"))
    return "{}, {} cores, {} GiB, {}".format(*told)


def page(rows: Sequence[dict[str, Any]], known: dict[str, Any]) -> str:
    """The whole page."""
    facts, failed = known.get("lines", {}), known.get("failed", {})
    text = [
        OPENING,
        "## What was measured",
        "",
        *(f"- `{line}`: {_sentence(about)}" for line, (_, about) in LINES.items()),
        "",
        "## Figures",
        "",
    ]
    text += ["| " + " | ".join(HEADS) + " |", "|" + "---|" * len(HEADS)]
    text += [_row(cells(r, facts.get(r["line"], {}))) for r in rows]
    if failed:
        text += ["", "## Not measured", "", "Figures above of these lines are older."]
        text += [
            "",
            *(f"- {_failure(line, failed[line])}" for line in sorted(failed, key=place_of)),
        ]
    text += ["", METHOD, f"Machine: {described(known)}.", ""]
    for key, title in GROUPS:
        told = ", ".join(f"{k} {v}" for k, v in known.get(key, {}).items()) or "-"
        text += [f"{title}: {told}.", ""]
    text += ["</details>", "", "<details>", "<summary>What bounds them, line by line</summary>", ""]
    for row in rows:
        fact = facts.get(row["line"], {})
        load_then = ", ".join(str(x) for x in fact.get("load_before", ()))
        load_later = ", ".join(str(x) for x in fact.get("load_after", ()))
        there = fact.get("machine", described(known))
        other = "" if there == described(known) else f", measured on: {there}"
        text.append(
            f"- **{row['line']}** ({fact.get('measured_at', '')}, load before it {load_then}, "
            f"after it {load_later}, scale {fact.get('scale', 1)}{_rounds(fact)}{other}): "
            f"{fact.get('note') or 'nothing to say.'}{_all(fact)}"
        )
    return "\n".join([*text, "", "</details>"]) + "\n"


def _sentence(about: str) -> str:
    return f"{about[:1].upper()}{about[1:]}."


def _row(line: Sequence[str]) -> str:
    return "| " + " | ".join(cell.replace("|", "/").replace("\n", " ") for cell in line) + " |"


def _rounds(fact: dict[str, Any]) -> str:
    return f", rounds {fact['rounds']}" if "rounds" in fact else ""


def _all(fact: dict[str, Any]) -> str:
    """The peak memory of all processes of a line together, where it was measured."""
    return f" Memory of all of it at its peak: {fact['memory']}." if "memory" in fact else ""
