"""What pages and the assessment say of tables that merge together."""

from __future__ import annotations

from typing import Any

import pytest
from django.test import Client

from assessments.modes import mode_problems
from replicators.config import ReplicatorConfig
from replicators.models import Replicator
from runners.models import ChangeFile, Table
from runners.tables.together import Apart, tables_apart
from tests.app.factories import config_fields

pytestmark = pytest.mark.django_db
END = 5 << 32


def table(replicator: Replicator, name: str, **values: object) -> Table:
    given = {"state": "replicating", "merged_sequence": END, "snapshot_position": 7, **values}
    found, _ = Table.objects.update_or_create(
        replicator=replicator, schema_name="shop", name=name, defaults=given
    )
    return found


def test_the_page_names_the_tables_that_are_not_at_the_moment_of_the_others(
    client: Client, editor: Any, replicator: Replicator
) -> None:
    """Guards `tables_apart`: a copy that is not consistent must not seem to be. An idle table is
    level although nothing of it was merged for long."""
    Table.objects.filter(replicator=replicator).delete()
    table(replicator, "level")
    table(replicator, "idle", merged_sequence=1)
    late = table(replicator, "late", merged_sequence=1)
    for first, position in ((END - 3, 9), (END + 3, 11)):
        ChangeFile.objects.create(
            replicator=replicator, segment_number=4, schema_name="shop", table_name="late",
            path="p", version="v", schema={}, first_sequence=first, last_sequence=first,
            first_committed_at=1, last_committed_at=1, first_position=position,
            last_position=position, size_bytes=1, crc32=1,
        )  # fmt: skip
    table(replicator, "wrong", state="failing", error_code="target:conflict")
    table(replicator, "held", rows_quarantined=2)
    assert tables_apart(replicator) is None
    Replicator.objects.filter(pk=replicator.pk).update(options={"consistent": "on"})
    replicator.refresh_from_db()
    assert tables_apart(replicator) == Apart(
        (
            ("shop.held", "rows quarantined"),
            ("shop.late", "catching up"),
            ("shop.wrong", "failing"),
        )
    )
    client.force_login(editor)
    page = client.get(f"/replicators/{replicator.pk}/").content.decode()
    assert "Tables merge together" in page and "held</span> (rows quarantined)" in page
    late.merged_sequence = END
    late.save()
    Table.objects.filter(name__in=("wrong", "held")).delete()
    assert tables_apart(replicator) == Apart()


@pytest.mark.parametrize(("kind", "is_said"), [("files", True), ("postgresql", False)])
def test_the_assessment_says_which_targets_can(kind: str, *, is_said: bool) -> None:
    """Guards the check of `merges_together`: the option must not be without effect."""
    params = {
        "files": {"location": "/data"},
        "postgresql": {"host": "h", "database": "d", "user": "u"},
    }
    fields = config_fields(
        target_kind=kind, target_params=params[kind], options={"consistent": "on"}
    )
    problems = mode_problems(ReplicatorConfig.parse(fields), [])
    assert ("target:no-consistent" in {p.code for p in problems}) is is_said
