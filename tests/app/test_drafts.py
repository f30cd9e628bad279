"""Drafts: filled step by step, assessed, deployed once."""

from __future__ import annotations

import pytest
from django.contrib.auth.models import User

from assessments.report import Support
from assessments.services import connection_test, describe_table, list_tables
from drafts.models import Draft
from drafts.selectors import draft_shown
from drafts.services import (
    DeployRefused,
    DraftDeployed,
    StaleDraft,
    draft_assess,
    draft_create,
    draft_deploy,
    draft_update,
)
from replicators.config import InvalidConfig
from replicators.connectors.model.schema import TableId
from replicators.connectors.params import MASK
from replicators.connectors.problems.errors import ReplicationError
from replicators.models import DesiredState, Replicator
from replicators.services import NameTaken, source_of
from tests.app.factories import SECRET, config_fields, make_replicator

pytestmark = pytest.mark.django_db


def test_a_draft_grows_and_a_stale_tab_is_refused(editor: User) -> None:
    draft = draft_create(actor=editor, name="new")
    draft = draft_update(draft=draft, version=1, source_kind="memory", source_params={"host": "h"})
    assert draft.version == 2
    with pytest.raises(StaleDraft):
        draft_update(draft=draft, version=1, name="late")
    assert Draft.objects.get().name == "new"


def test_a_drafts_secret_is_masked_and_survives_the_round_trip(editor: User) -> None:
    draft = draft_create(actor=editor, **config_fields())
    shown = draft_shown(draft)
    assert shown["source_params"]["password"] == MASK
    draft = draft_update(draft=draft, version=1, source_params=shown["source_params"])
    assert source_of(draft_deploy(draft=draft, actor=editor)).password == SECRET


def test_wrong_fields_are_named(editor: User) -> None:
    with pytest.raises(InvalidConfig) as caught:
        draft_create(actor=editor, name=3, tables="all", colour="red")
    assert set(caught.value.errors) == {"name", "tables", "colour"}


def test_a_report_reads_the_fits_of_the_plugins(editor: User) -> None:
    tables = [{"schema": "shop", "name": n} for n in ("orders", "places", "page_views", "gone")]
    report = draft_assess(draft=draft_create(actor=editor, **config_fields(tables=tables)))
    assert [t.name for t in report.tables] == ["orders", "places", "page_views"]
    orders, places, _ = report.tables
    assert [c.support for c in orders.columns] == [Support.YES, Support.PARTIAL, Support.YES]
    assert (orders.partial, places.unsupported, places.columns_total) == (1, 1, 2)
    codes = {p.code for p in report.problems}
    assert codes == {
        "source:no-key", "source:column-unsupported", "source:table-missing", "target:column-lossy",
    }  # fmt: skip
    assert report.has_errors
    assert report.to_json()["tables"][0]["columns"][1]["support"] == "PARTIAL"


def test_an_error_forbids_the_deploy(editor: User) -> None:
    draft = draft_create(actor=editor, **config_fields(target_params={"fault": "taken"}))
    with pytest.raises(DeployRefused) as caught:
        draft_deploy(draft=draft, actor=editor)
    assert caught.value.problems[0].code == "target:table-taken"
    assert not Replicator.objects.exists()


def test_deploying_twice_makes_one_replicator_that_is_to_run(editor: User) -> None:
    draft = draft_create(actor=editor, **config_fields())
    first = draft_deploy(draft=draft, actor=editor)
    assert draft_deploy(draft=draft, actor=editor) == first
    assert first.desired_state == DesiredState.RUNNING
    assert first.table_rows.count() == 2
    with pytest.raises(DraftDeployed):
        draft_update(draft=draft, version=1, name="other")


def test_a_taken_name_leaves_the_draft(editor: User) -> None:
    make_replicator("shop to lakehouse")
    draft = draft_create(actor=editor, **config_fields())
    with pytest.raises(NameTaken):
        draft_deploy(draft=draft, actor=editor)
    assert Draft.objects.get().replicator_id is None


@pytest.mark.parametrize(
    ("fault", "code"),
    [
        ("unreachable", "source:unreachable"),
        ("login", "source:login-refused"),
        ("crash", "internal:unexpected"),
    ],
)
def test_a_source_that_fails_is_reported_as_a_problem_without_driver_text(
    fault: str, code: str
) -> None:
    params = {"host": "h", "password": SECRET, "fault": fault}
    (problem,) = connection_test(role="source", kind="memory", params=params)
    assert problem.code == code
    assert SECRET not in str(problem.to_json())
    with pytest.raises(ReplicationError) as caught:
        list_tables(kind="memory", params=params)
    assert caught.value.code == code


def test_tables_are_listed_and_described() -> None:
    params = {"host": "h"}
    assert [str(t.id) for t in list_tables(kind="memory", params=params)][0] == "shop.customers"
    found = describe_table(kind="memory", params=params, table=TableId("shop", "orders"))
    assert found.key == ("id",)
    with pytest.raises(ReplicationError, match="table-missing"):
        describe_table(kind="memory", params=params, table=TableId("shop", "nothing"))
