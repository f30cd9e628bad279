"""Named places in the order of writes where a test can kill or hold this process; nothing happens
without the variable.

`REPLICATOR_FAILPOINTS` is a comma-separated list of `<name>=<act>:<flag file>`. `kill`: SIGKILL to
the own process the first time (the flag file is made first, so that the next process goes on and
the test has its proof). `hold`: wait at the place while the flag file exists.
"""

from __future__ import annotations

import os
import signal
import time
from functools import cache
from pathlib import Path

SINK_NAMES = (
    "starts_recorded",
    "snapshot_part_delivered",
    "snapshot_delivered",
    "changes_delivered",
    "resolved_recorded",
    "resolved_reported",
)
"""The places in a `ChangeSink`'s order of writes."""
SQL_NAMES = ("copy_numbered", "copy_announced", "copy_swapped", "batch_staged", "batch_merged")
"""The places within one call of a SQL target (`connectors/sql/target.py`)."""
KEYED_NAMES = ("batch_journaled", "journal_applied")
"""The places in a merge that is larger than a commit (`connectors/sql/keyed.py`)."""
REPAIR_NAMES = (
    "repair_read",
    "repair_cleared",
    "repair_merged",
    "repair_written",
    "repair_recorded",
)
"""The places in a repair (`runners/engine/apply/repair.py`)."""
DELIVERY_NAMES = (
    "delivery_hashed",
    "delivery_changes_written",
    "delivery_compared",
    "delivery_recorded",
)
"""The places while a delivery is compared (`sources/compared`)."""
NAMES = (
    "segment_renamed",
    "segment_recorded",
    "source_acknowledged",
    "change_files_written",
    "change_files_listed",
    "rows_quarantined",
    "target_evolved",
    "target_merged",
    "merge_recorded",
    "round_ended",
    *REPAIR_NAMES,
    "rewind_begun",
    "rewind_replayed",
    "rewind_published",
    "files_unlinked",
    "tables_published",
    "tables_withdrawn",
    "snapshot_begun",
    "snapshot_chunks_recorded",
    "snapshot_loaded",
    "snapshot_published",
    "snapshot_recorded",
    *SINK_NAMES,
    *SQL_NAMES,
    *KEYED_NAMES,
    *DELIVERY_NAMES,
)


@cache
def _plan() -> dict[str, tuple[str, Path]]:
    plan: dict[str, tuple[str, Path]] = {}
    for item in filter(None, os.environ.get("REPLICATOR_FAILPOINTS", "").split(",")):
        name, _, rest = item.partition("=")
        act, _, flag = rest.partition(":")
        if name not in NAMES or act not in {"kill", "hold"} or not flag:
            raise ValueError(
                f"REPLICATOR_FAILPOINTS: {item!r} is not <name>=<kill|hold>:<flag file>"
            )
        plan[name] = (act, Path(flag))
    return plan


def hit(name: str) -> None:
    """Say that the place `name` was reached."""
    act, flag = _plan().get(name, ("", Path()))
    if act == "kill" and not flag.exists():
        flag.write_text(str(os.getpid()))
        os.kill(os.getpid(), signal.SIGKILL)
    while act == "hold" and flag.exists():
        time.sleep(0.05)
