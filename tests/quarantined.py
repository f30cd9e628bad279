"""Which rows of a table wait beside its target, as the program's own database has them."""

from __future__ import annotations

from runners.models import QuarantinedRow
from tests.harness import World


def waiting(world: World) -> set[str]:
    """The keys of the rows of `odd` that wait once it is merged as far as it is."""
    row = world.row("odd")
    found = QuarantinedRow.objects.filter(
        table=row, generation=row.generation, sequence__lte=row.merged_sequence
    )
    return {p.key for p in found if p.freed_at is None or p.freed_at > row.merged_sequence}


def keys(*ids: int) -> set[str]:
    """Keys as quarantined rows show them."""
    return {f'{{"id": "{i}"}}' for i in ids}
