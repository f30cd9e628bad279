"""The audit trail: rows are added only, in code and in the database, and old ones go only as the
setting says."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest
from django.db import DatabaseError, connection, transaction
from django.utils import timezone

from replicators import audit
from replicators.audit import AuditEntry, AuditKept, Thing, changed, record

pytestmark = pytest.mark.django_db
DRAFT = Thing("draft", "1", "shop")


def aged(days: int) -> AuditEntry:
    at = timezone.now() - timedelta(days=days)
    return AuditEntry.objects.create(at=at, act="draft_changed", how="page")


class TestRecord:
    def test_secrets_are_masked_by_declaration_by_name_and_inside_addresses(self) -> None:
        old, new = changed(
            {"source.password": "one", "source.pem": "key", "source.host": "a", "name": "same"},
            {"source.password": "two", "source.pem": "", "source.host": "b", "name": "same"},
            secret={"source.pem"},
        )
        row = record(
            "draft_changed",
            DRAFT,
            old=old,
            new={
                **new,
                "uri": "postgresql://me:hunter2@db/x?secret_key=hunter2&region=eu",
                "deep": {"access_secret": "hunter2"},
            },
        )
        row.refresh_from_db()
        assert row.old_values == {
            "source.password": "********",
            "source.pem": "********",
            "source.host": "a",
        }
        assert row.new_values == {
            "source.password": "******** (changed)",
            "source.pem": "",
            "source.host": "b",
            "uri": "postgresql://me:********@db/x?secret_key=********&region=eu",
            "deep": {"access_secret": "********"},
        }

    def test_what_no_database_can_store_and_what_is_endless_is_cut(self) -> None:
        row = record(
            "draft_changed",
            Thing("draft", "1", "a\0b\ud800"),
            new={"text": "x\0" * 5_000, "tables": list(range(1_000))},
        )
        row.refresh_from_db()
        assert row.object_name == "ab?"
        assert len(row.new_values["text"]) < 2_100
        assert row.new_values["tables"][-1] == "… and 800 more"

    def test_without_a_request_the_program_itself_acts(self) -> None:
        row = record("draft_changed", DRAFT)
        with audit.commanded("tidy"):
            other = record("draft_changed", DRAFT)
        assert (row.how, row.actor, row.through) == ("program", "", "")
        assert (other.how, other.through) == ("command", "tidy")


class TestAppendOnly:
    def test_code_refuses(self) -> None:
        row = aged(1)
        row.actor = "somebody"
        for act in (
            row.save,
            row.delete,
            AuditEntry.objects.all().delete,
            lambda: AuditEntry.objects.update(actor="x"),
            lambda: AuditEntry.objects.bulk_update([row], ["actor"]),
        ):
            with pytest.raises(AuditKept):
                act()

    @pytest.mark.parametrize(
        "statement",
        [
            "UPDATE replicators_auditentry SET actor = 'x'",
            "DELETE FROM replicators_auditentry",
        ],
    )
    def test_the_database_refuses_too(self, statement: str) -> None:
        aged(1)
        said = pytest.raises(DatabaseError, match="neither changed nor deleted")
        with said, transaction.atomic(), connection.cursor() as cursor:
            cursor.execute(statement)
        assert AuditEntry.objects.count() == 1


class TestRetention:
    def test_by_default_all_are_kept(self) -> None:
        aged(10_000)
        assert audit.prune() == 0
        assert AuditEntry.objects.count() == 1

    def test_old_rows_go_with_a_row_that_says_so(self, settings: Any) -> None:
        settings.AUDIT_SECONDS = 30 * 86400
        old, young = aged(31), aged(29)
        assert audit.prune() == 1
        reported = AuditEntry.objects.first()
        assert reported is not None
        assert (reported.act, reported.how, reported.new_values["rows"]) == (
            "audit_pruned",
            "program",
            1,
        )
        assert {r.pk for r in AuditEntry.objects.all()} == {young.pk, reported.pk}
        assert audit.prune() == 0
        with pytest.raises(DatabaseError), transaction.atomic(), connection.cursor() as cursor:
            cursor.execute("DELETE FROM replicators_auditentry WHERE id = %s", [young.pk])
        assert old.pk not in {r.pk for r in AuditEntry.objects.all()}
