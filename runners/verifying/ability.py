"""Whether a replicator can be verified, and a table repaired: refusals as sentences for people."""

from __future__ import annotations

from replicators.config import target_can
from replicators.models import Replicator
from runners.models import Table
from runners.states import TableState
from runners.verifications import VerifiedTable


def refusal_verify(replicator: Replicator) -> str:
    """Why it can't be verified; empty where it can."""
    if replicator.deleting_since is not None:
        return "This replicator is being deleted."
    can = target_can(replicator.target_kind)
    if can is None:
        return f"The target plugin `{replicator.target_kind}` is not installed."
    if not can.can_read_rows:
        return (
            "Rows of this target can't be read back, so there is nothing to compare. Targets with "
            "tables can be verified; topics, files and indexes can't."
        )
    return ""


def refusal_repair(replicator: Replicator, table: Table, verified: VerifiedTable) -> str:
    """Why rows of the table can't be repaired; empty where they can. Whether the run can write
    single rows in the table's mode, it says itself when it gets there."""
    name = f"{table.schema_name}.{table.name}"
    if replicator.deleting_since is not None:
        return "This replicator is being deleted."
    if table.generation != verified.generation:
        return f"{name} was copied afresh since. Verify it again."
    if table.schema and not table.schema.get("key"):
        return f"{name} has no key, so single rows can't be repaired. Re-sync the table instead."
    if table.state != TableState.REPLICATING or table.is_resync_asked:
        return f"{name} can be repaired only while it replicates."
    return ""
