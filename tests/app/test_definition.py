"""A deployed replicator's name, connections and options are changed over REST, and what may not be
changed is refused."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest
from django.test import Client
from django.utils import timezone

from replicators.config import place_params
from replicators.connectors.params import MASK
from replicators.connectors.registry import targets
from replicators.models import Replicator
from replicators.services import params_of, params_shown
from runners.models import Event, Progress
from runners.states import RunState
from runners.supervision.reconcile import reconcile_runs
from tests.app.factories import SECRET, make_replicator
from tests.app.pages import make_live

pytestmark = pytest.mark.django_db
PLACES = {
    "lakehouse": {
        "warehouse", "format", "catalog", "catalog_uri", "catalog_name", "catalog_warehouse",
        "delta_catalog",
        "namespace", "schema_namespaces", "table_prefix", "name_case",
    },
    "files": {"location", "format", "bucket", "compression"},
    "postgresql": {"database", "schema", "origin"},
    "mysql": {"database"},
    "bigquery": {"project", "dataset", "location", "endpoint"},
    "snowflake": {"account", "database", "schema"},
    "redshift": {"database", "schema"},
    "spanner": {"project", "instance", "database", "endpoint", "table_names", "commit_column"},
    "elasticsearch": {"index", "json"},
    "subscribers": {"location"},
    "kafka": {"topic_prefix", "topic", "schema_topic", "envelope", "record", "format"},
    "memory": {"namespace", "fault"},
}  # fmt: skip


@pytest.fixture
def api(client: Client, editor: Any) -> Client:
    client.force_login(editor)
    return client


def patch(api: Client, replicator: Replicator, **body: Any) -> Any:
    """Ask for a change."""
    return api.patch(f"/api/v1/replicators/{replicator.pk}/", body, "application/json")


def test_what_is_left_out_stays_and_the_event_names_fields_without_values(
    api: Client, replicator: Replicator
) -> None:
    """Guards the merge with what is stored; fails where params or options are replaced as a
    whole."""
    body = {"source_params": {"password": "n3w-one", "host": "db2.example"}}
    response = patch(api, replicator, name="renamed", options={"keep_hours": 48}, **body)
    assert response.status_code == 200
    shown = response.json()
    assert shown["name"] == "renamed"
    assert shown["source"]["params"] == {
        "host": "db2.example", "port": 1, "fault": "none", "password": MASK,
    }  # fmt: skip
    patch(api, replicator, options={"retry_minutes": 5})
    replicator.refresh_from_db()
    assert params_of(replicator, "source")["password"] == "n3w-one"
    assert (replicator.options["keep_hours"], replicator.options["retry_minutes"]) == (48.0, 5.0)
    first, second = Event.objects.filter(kind="replicator_changed").order_by("pk")
    named = ["name", "options.keep_hours", "source.host", "source.password"]
    assert (sorted(first.facts["fields"]), first.actor) == (named, "editor")
    assert second.facts["fields"] == ["options.retry_minutes"]
    assert "n3w-one" not in str(Event.objects.values_list("facts", flat=True))


def test_a_mask_keeps_a_secret_and_null_takes_it_away(api: Client, replicator: Replicator) -> None:
    assert patch(api, replicator, source_params={"password": MASK}).status_code == 200
    assert params_of(replicator, "source")["password"] == SECRET
    assert not Event.objects.filter(kind="replicator_changed").exists()
    answer = patch(api, replicator, source_params={"password": None}, options={"mode": None})
    assert answer.json()["source"]["params"].get("password", "") == ""
    assert Event.objects.get(kind="replicator_changed").facts["fields"] == ["source.password"]


@pytest.mark.parametrize(
    ("body", "fields"),
    [
        ({"name": ""}, {"name"}),
        ({"name": 7 * [1]}, {"name"}),
        ({"tables": []}, {"tables"}),
        ({"source_kind": "postgresql"}, {"source_kind"}),
        ({"source_params": []}, {"source_params"}),
        ({"source_params": {"port": 0, "host": "", "colour": 1}},
         {"source.port", "source.host", "source.colour"}),
        ({"target_params": {"namespace": "elsewhere"}}, {"target.namespace"}),
        ({"options": {"keep_hours": -1, "speed": 9}}, {"options.keep_hours", "options.speed"}),
        ({"restart": "perhaps"}, {"restart"}),
    ],
)  # fmt: skip
def test_what_is_wrong_is_named_and_nothing_is_changed(
    body: dict[str, Any], fields: set[str], api: Client, replicator: Replicator
) -> None:
    """Guards the checks of the whole definition, and that the target's place stays; fails where
    `_require_place` is switched off."""
    before = Replicator.objects.filter(pk=replicator.pk).values().get()
    response = patch(api, replicator, **body)
    assert response.status_code == 400
    answer = response.json()
    assert set(answer) == {"code", "message", "fields", "problems"}
    assert set(answer["fields"]) == fields
    assert Replicator.objects.filter(pk=replicator.pk).values().get() == before


def test_a_name_in_use_and_a_delete_are_conflicts(api: Client, replicator: Replicator) -> None:
    make_replicator("another")
    taken = patch(api, replicator, name="another")
    assert taken.status_code == 409 and set(taken.json()["fields"]) == {"name"}
    Replicator.objects.filter(pk=replicator.pk).update(deleting_since=timezone.now())
    gone = patch(api, replicator, name="later")
    assert (gone.status_code, gone.json()["code"]) == (409, "config:not-now")


@pytest.mark.parametrize("kind", sorted(targets()))
def test_which_parameters_say_where_tables_lie_is_decided_for_each_target(kind: str) -> None:
    """Guards the rule by which a place is known; a new target has to be looked at here."""
    assert set(place_params(kind)) == PLACES[kind]


def test_a_failed_replicator_is_tried_at_once_with_another_connection(
    api: Client, replicator: Replicator
) -> None:
    """Guards the clearing of the back-off; fails where `back_off_clear` is left out."""
    Replicator.objects.filter(pk=replicator.pk).update(desired_state="running")
    late = timezone.now() + timedelta(minutes=9)
    Progress.objects.update(
        failures=7, retry_at=late, is_given_up=True, error_code="source:login-refused"
    )
    assert patch(api, replicator, options={"seal_seconds": 2}).status_code == 200
    reconcile_runs()
    assert not replicator.runs.exists()
    assert patch(api, replicator, source_params={"password": "right"}).status_code == 200
    progress = Progress.objects.get(replicator=replicator)
    assert (progress.failures, progress.retry_at, progress.is_given_up) == (0, None, False)
    reconcile_runs()
    assert replicator.runs.exists()


def test_a_run_goes_on_unless_a_restart_is_asked_for(api: Client, replicator: Replicator) -> None:
    """Guards that only the run stops: what people asked for stays *running*, so that another run
    starts."""
    run = make_live(replicator)
    patch(api, replicator, source_params={"host": "db2.example", "password": SECRET})
    run.refresh_from_db()
    assert (run.state, run.is_stop_asked) == (RunState.RUNNING, False)
    assert patch(api, replicator, restart=True).status_code == 200
    run.refresh_from_db()
    assert (run.state, run.stop_origin) == (RunState.STOPPING, "change")
    replicator.refresh_from_db()
    assert replicator.desired_state == "running"
    assert Event.objects.get(kind="run_stop_asked").actor == "editor"


def test_a_source_whose_log_goes_on_elsewhere_is_refused_unless_it_is_accepted(
    api: Client, replicator: Replicator
) -> None:
    """Guards the look at the source before anything is stored: the run would begin its log anew
    there, and the right server's place in the log would be lost. The position is of no in-memory
    database."""
    Progress.objects.update(position={"value": 7, "detail": {}})
    assert patch(api, replicator, source_params={"password": "rotated"}).status_code == 200
    refused = patch(api, replicator, source_params={"host": "wrong.example", "password": SECRET})
    answer = refused.json()
    assert (refused.status_code, answer["code"]) == (409, "config:another-server")
    assert set(answer["fields"]) == {"source.host"} and "another database" in answer["message"]
    replicator.refresh_from_db()
    assert replicator.source_params["host"] == "db.example"
    taken = patch(
        api,
        replicator,
        source_params={"host": "right.example", "password": SECRET},
        accept_lost_position=True,
    )
    assert taken.status_code == 200


def test_a_mode_that_a_table_can_not_have_is_refused_with_its_problem(
    api: Client, editor: Any
) -> None:
    """Guards the assessment before a change of mode, of the tables that have none of their own;
    fails where `_require_modes` is left out."""
    keyless, orders = {"schema": "shop", "name": "page_views"}, {"schema": "shop", "name": "orders"}
    made = make_replicator("keyless", tables=[keyless, orders])
    refused = patch(api, made, options={"mode": "soft_delete"})
    answer = refused.json()
    assert (refused.status_code, answer["code"]) == (409, "change-refused")
    assert "page_views" in {p["table"] for p in answer["problems"]}
    made.refresh_from_db()
    assert made.options["mode"] == "mirror"
    own = make_replicator("one of its own", tables=[{**keyless, "mode": "mirror"}, orders])
    assert patch(api, own, options={"mode": "soft_delete"}).status_code == 200


def test_passwords_that_can_not_be_read_are_entered_again(
    api: Client, replicator: Replicator, settings: Any
) -> None:
    """Guards the way out of a lost key: fails where a change first reads what is stored."""
    settings.REPLICATOR_SECRET_KEY = "another"
    assert params_shown(replicator, "source")["password"] == MASK
    for given in ({}, {"password": MASK}):
        refused = patch(api, replicator, source_params={"host": "db2.example", **given})
        assert refused.status_code == 400
        assert set(refused.json()["fields"]) == {"source.password"}
    assert patch(api, replicator, source_params={"password": "again"}).status_code == 200
    replicator.refresh_from_db()
    assert params_of(replicator, "source") == {
        "host": "db.example", "port": 1, "fault": "none", "password": "again",
    }  # fmt: skip


def test_only_who_may_edit_changes_a_replicator(
    client: Client, replicator: Replicator, viewer: Any, stranger: Any
) -> None:
    for user in (viewer, stranger):
        client.force_login(user)
        assert patch(client, replicator, name="mine").status_code == 403
        page = f"/replicators/{replicator.pk}/edit/"
        assert client.get(page).status_code == 403
        assert client.post(page, {"name": "mine"}).status_code == 403
    client.logout()
    assert patch(client, replicator, name="mine").status_code == 401
