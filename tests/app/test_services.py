"""Replicators, tokens and actions on them."""

from __future__ import annotations

from functools import partial
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.utils import timezone

from replicators.config import InvalidConfig
from replicators.connectors.params import MASK
from replicators.models import ApiToken, DesiredState, Replicator
from replicators.services import (
    NameTaken,
    params_shown,
    replicator_create,
    replicator_export,
    replicator_update,
    source_of,
)
from replicators.tokens import TokenRefused, token_create, token_of
from runners.models import Event, Progress, Run, Table
from runners.services import (
    IllegalTransition,
    replicator_delete,
    replicator_pause,
    replicator_resume,
    replicator_start,
    run_transition,
    table_resync,
    table_retry,
    table_transition,
)
from runners.states import RunState, TableState
from tests.app.factories import SECRET, config_fields, make_replicator, make_run

pytestmark = pytest.mark.django_db


def test_secrets_are_stored_encrypted_and_shown_masked(replicator: Replicator) -> None:
    """Guards `params_store`, `params_shown` and `replicator_export`: a password in clear in a row,
    on a page or in an export."""
    row = Replicator.objects.get(pk=replicator.pk)
    assert SECRET not in str(row.source_params) + row.source_secrets
    assert source_of(row).password == SECRET
    assert params_shown(row, "source")["password"] == MASK
    assert SECRET not in str(replicator_export(row))
    assert "password" not in replicator_export(row)["source_params"]


def test_a_mask_sent_back_keeps_the_stored_secret(replicator: Replicator) -> None:
    """Guards `params_merged`: a form that is saved unchanged would make the mask the password."""
    changed = replicator_update(
        replicator=replicator,
        actor=None,
        source_params={"fault": "login", "password": MASK},
    )
    assert source_of(changed).password == SECRET
    assert source_of(changed).fault == "login"


def test_a_name_is_given_once(replicator: Replicator) -> None:
    """Guards `name_require_free`: the database's own refusal would be an error page."""
    with pytest.raises(NameTaken) as caught:
        make_replicator(replicator.name)
    assert replicator.name in caught.value.errors["name"]
    assert Replicator.objects.count() == 1


def test_every_faulty_field_is_named_at_once() -> None:
    """Guards `ReplicatorConfig.parse`: raised at the first fault, people would mend field by
    field."""
    with pytest.raises(InvalidConfig) as caught:
        replicator_create(
            actor=None,
            **config_fields(
                "",
                source_params={"port": 0, "colour": "red"},
                target_kind="nowhere",
                tables=[],
                options={"seal_seconds": 0},
            ),
        )
    assert set(caught.value.errors) == {
        "name", "source.host", "source.port", "source.colour", "target_kind", "tables",
        "options.seal_seconds",
    }  # fmt: skip


def test_a_token_is_kept_only_as_a_hash(editor: User) -> None:
    """Guards `token_create`: whoever reads the table could use every token in it."""
    token, text = token_create(user=editor, name="ci")
    assert text not in str(ApiToken.objects.filter(pk=token.pk).values())
    assert token_of(text).user == editor
    with pytest.raises(TokenRefused):
        token_of("rpl_guess")


def test_start_and_pause_say_what_is_wanted_and_by_whom(
    replicator: Replicator, editor: User
) -> None:
    """Guards `replicator_start` and `replicator_pause`: wish, run and event rows change together,
    so that who did it is on record."""
    replicator_start(replicator=replicator, actor=editor)
    assert replicator.desired_state == DesiredState.RUNNING
    run = make_run(replicator, state=RunState.RUNNING)
    replicator_pause(replicator=replicator, actor=editor)
    run.refresh_from_db()
    assert (run.is_stop_asked, run.stop_origin, run.state) == (True, "user", RunState.STOPPING)
    kinds = list(Event.objects.order_by("pk").values_list("kind", "actor"))
    assert kinds == [
        ("replicator_started", "editor"),
        ("replicator_paused", "editor"),
        ("run_stop_asked", "editor"),
    ]


def test_resume_forgets_failures(replicator: Replicator) -> None:
    """Guards `back_off_clear`: with what it forgets left in place, a person who mended the cause
    would wait out the back-off, or for ever."""
    Progress.objects.update(failures=9, is_given_up=True, error_code="source:version")
    replicator_resume(replicator=replicator, actor=None)
    progress = Progress.objects.get()
    assert (progress.failures, progress.is_given_up, progress.error_code) == (0, False, "")


def test_a_replicator_that_is_being_deleted_takes_no_actions(replicator: Replicator) -> None:
    """Guards `services._locked`: started again during its removal, a run would write to a slot and
    tables that are being dropped."""
    replicator_delete(replicator=replicator, actor=None, keep_target=True)
    replicator_delete(replicator=replicator, actor=None, keep_target=True)
    assert Event.objects.filter(kind="replicator_delete_asked").count() == 1
    for act in (replicator_start, replicator_pause, replicator_resume):
        with pytest.raises(IllegalTransition):
            act(replicator=replicator, actor=None)


def test_a_run_moves_only_along_its_machine(replicator: Replicator) -> None:
    """Guards `run_transition`: an event that does not fit is refused with those that would, and
    every move has its event row."""
    run = make_run(replicator)
    run_transition(run=run, event="run_started")
    assert run.state == RunState.RUNNING
    with pytest.raises(IllegalTransition) as caught:
        run_transition(run=run, event="run_started")
    assert "run_stop_asked" in caught.value.legal
    run_transition(run=run, event="run_failed", code="run:spark")
    assert run.state == RunState.FAILED
    assert run.ended_at is not None
    assert Event.objects.filter(kind="run_failed", code="run:spark").count() == 1


def test_two_live_runs_of_one_replicator_are_impossible(replicator: Replicator) -> None:
    """Guards the unique constraint on live runs (CORRECTNESS 29): two that start at once would
    capture and merge the same changes."""
    from django.db import IntegrityError

    make_run(replicator)
    with pytest.raises(IntegrityError):
        make_run(replicator)
    assert Run


def test_a_failing_table_keeps_since_when_and_is_reported_once(replicator: Replicator) -> None:
    """Guards `transitions._error`: each try again would begin the failure anew, and fill the list
    of events."""
    table = Table.objects.get(name="orders")
    table_transition(table=table, event="table_failed", code="target:table-missing")
    since = table.error_since
    table_transition(table=table, event="table_failed", code="target:table-missing")
    assert table.error_since == since
    assert Event.objects.filter(kind="table_failed").count() == 1
    table_transition(table=table, event="table_recovered")
    assert (table.state, table.error_code, table.error_since) == (TableState.REPLICATING, "", None)


def test_a_resync_is_asked_for_by_a_flag_that_the_run_sees(
    replicator: Replicator, editor: User
) -> None:
    """Guards `table_resync` and `table_retry`: the first reaches a run that runs; a retry of a
    table that does not fail is refused."""
    table_resync(replicator=replicator, schema="shop", name="orders", actor=editor)
    assert Table.objects.get(name="orders").is_resync_asked
    with pytest.raises(Table.DoesNotExist):
        table_resync(replicator=replicator, schema="shop", name="nothing", actor=editor)
    with pytest.raises(IllegalTransition):
        table_retry(replicator=replicator, schema="shop", name="orders", actor=editor)


def failing(code: str, **changes: Any) -> Table:
    table = Table.objects.get(name="orders")
    return table_transition(table=table, event="table_failed", code=code, **changes)


def test_a_table_whose_changes_are_missing_is_not_tried_again(
    replicator: Replicator, editor: User
) -> None:
    """Guards "Retry now" against a table that turns green over a hole: what was dropped or never
    listed comes by a re-sync only."""
    again = partial(table_retry, replicator=replicator, schema="shop", name="orders", actor=editor)
    Table.objects.update(is_snapshot_done=True)
    for code in ("log:table-over-limit", "source:slot-missing", "source:value-unsupported"):
        failing(code)
        with pytest.raises(IllegalTransition) as caught:
            again()
        assert "re-sync" in caught.value.message
        assert Table.objects.get(name="orders").retry_at is None
    Table.objects.update(is_snapshot_done=False)
    assert again().is_resync_asked, "nothing is lost of a copy that was never done"
    Table.objects.update(is_snapshot_done=True, is_resync_asked=False)
    table_transition(table=Table.objects.get(name="orders"), event="table_waits")
    failing("target:column-missing")
    assert again().retry_at is not None
    failing("target:conflict", retry_at=timezone.now())
    assert not again().is_resync_asked
