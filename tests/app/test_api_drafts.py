"""REST on drafts, connections and assessments."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from django.core.management import call_command
from django.test import Client

from drafts.models import Draft
from replicators.connectors.params import MASK
from replicators.models import Replicator
from tests.app.factories import SECRET, config_fields

pytestmark = pytest.mark.django_db
JSON = "application/json"


@pytest.fixture
def api(client: Client, editor: Any) -> Client:
    """Signed in as an editor."""
    client.force_login(editor)
    return client


def _draft(api: Client, **changes: Any) -> dict[str, Any]:
    response = api.post("/api/v1/drafts/", config_fields(**changes), JSON)
    assert response.status_code == 201, response.content
    return dict(response.json())


def test_a_draft_becomes_one_replicator_however_often_it_is_deployed(api: Client) -> None:
    draft = _draft(api)
    assert draft["source_params"]["password"] == MASK
    first = api.post(f"/api/v1/drafts/{draft['id']}/deploy/")
    second = api.post(f"/api/v1/drafts/{draft['id']}/deploy/")
    assert (first.status_code, second.status_code) == (201, 201)
    assert first.json()["id"] == second.json()["id"]
    assert Replicator.objects.count() == 1
    assert SECRET not in first.content.decode()


def test_a_stale_draft_is_refused_and_a_mask_keeps_the_secret(api: Client) -> None:
    draft = _draft(api)
    url = f"/api/v1/drafts/{draft['id']}/"
    change = {"version": 1, "name": "other", "source_params": draft["source_params"]}
    changed = api.patch(url, change, JSON)
    assert (changed.status_code, changed.json()["version"]) == (200, 2)
    stale = api.patch(url, change, JSON)
    assert (stale.status_code, stale.json()["code"]) == (409, "stale-draft")
    assert api.post(f"{url}deploy/").status_code == 201


def test_a_deploy_with_errors_answers_409_with_the_problems(api: Client) -> None:
    draft = _draft(api, tables=[{"schema": "shop", "name": "gone"}])
    response = api.post(f"/api/v1/drafts/{draft['id']}/deploy/")
    assert response.status_code == 409
    assert response.json()["problems"][0]["code"] == "source:table-missing"
    assert Replicator.objects.count() == 0
    assert Draft.objects.count() == 1


def test_a_name_in_use_is_reported_at_its_field(api: Client, replicator: Replicator) -> None:
    draft = _draft(api)
    response = api.post(f"/api/v1/drafts/{draft['id']}/deploy/")
    assert response.status_code == 409
    assert response.json()["code"] == "config:name-taken"
    assert "name" in response.json()["fields"]


def test_a_draft_that_is_not_whole_names_each_field(api: Client) -> None:
    draft = api.post("/api/v1/drafts/", {"name": "half"}, JSON).json()
    response = api.post(f"/api/v1/drafts/{draft['id']}/deploy/")
    assert response.status_code == 400
    assert {"source_kind", "target_kind", "tables"} <= set(response.json()["fields"])


def test_misspelt_fields_are_refused(api: Client) -> None:
    response = api.post("/api/v1/drafts/", {"nam": "x"}, JSON)
    assert response.status_code == 400
    assert response.json()["fields"] == {"nam": ["This field is not known."]}


def test_a_draft_is_deleted(api: Client) -> None:
    draft = _draft(api)
    assert api.delete(f"/api/v1/drafts/{draft['id']}/").status_code == 204
    assert api.get(f"/api/v1/drafts/{draft['id']}/").status_code == 404


def test_a_connection_that_works_is_ok(api: Client) -> None:
    body = {"role": "source", "kind": "memory", "params": {"host": "db.example"}}
    response = api.post("/api/v1/connections/test/", body, JSON)
    assert (response.status_code, response.json()) == (200, {"ok": True, "problems": []})


DEAD = {
    "host": "127.0.0.1", "port": 1, "database": "shop", "user": "nobody", "password": SECRET,
}  # fmt: skip


def test_a_connection_that_fails_is_an_answer_and_a_dead_source_is_a_502(api: Client) -> None:
    dead = {"kind": "postgresql", "params": DEAD}
    tested = api.post("/api/v1/connections/test/", {"role": "source", **dead}, JSON)
    assert tested.status_code == 200
    assert tested.json()["ok"] is False
    assert tested.json()["problems"][0]["suggestion"]
    listed = api.post("/api/v1/sources/tables/", dead, JSON)
    assert listed.status_code == 502
    assert listed.json()["problems"][0]["code"] == "source:unreachable"
    assert SECRET not in listed.content.decode()


def test_unknown_kinds_and_wrong_params_are_named(api: Client) -> None:
    body = {"kind": "postgresql", "params": {"host": "h", "port": "x"}}
    response = api.post("/api/v1/sources/tables/", body, JSON)
    assert response.status_code == 400
    assert {"source.port", "source.database", "source.user"} <= set(response.json()["fields"])
    unknown = api.post("/api/v1/sources/tables/", {"kind": "papyrus", "params": {}}, JSON)
    assert unknown.status_code == 400


def test_tables_are_listed_and_described(api: Client) -> None:
    source = {"kind": "memory", "params": {"host": "db.example"}}
    names = [t["name"] for t in api.post("/api/v1/sources/tables/", source, JSON).json()]
    assert "orders" in names
    one = {**source, "schema": "shop", "table": "orders"}
    described = api.post("/api/v1/sources/tables/describe/", one, JSON)
    assert described.json()["columns"]


@pytest.mark.parametrize("rows", ["drafts", "replicators"])
def test_what_is_stored_is_looked_into_without_its_secrets(api: Client, rows: str) -> None:
    """Guards `StoredServers`: a program that has lost the password, or never had it, can still add
    tables."""
    draft = _draft(api, tables=[{"schema": "shop", "name": "orders"}])
    made = api.post(f"/api/v1/drafts/{draft['id']}/deploy/").json()
    url = f"/api/v1/{rows}/{draft['id'] if rows == 'drafts' else made['id']}"
    for role in ("source", "target"):
        tested = api.post(f"{url}/connections/test/", {"role": role}, JSON)
        assert (tested.status_code, tested.json()) == (200, {"ok": True, "problems": []})
    listed = api.post(f"{url}/source/tables/", {}, JSON)
    assert "customers" in {t["name"] for t in listed.json()}
    one = {"schema": "shop", "table": "orders"}
    described = api.post(f"{url}/source/tables/describe/", one, JSON)
    assert described.json()["name"] == "orders" and described.json()["columns"]
    gone = api.post(f"{url}/source/tables/describe/", {**one, "table": "gone"}, JSON)
    assert (gone.status_code, gone.json()["code"]) == (404, "source:table-missing")
    assert not any(SECRET in r.content.decode() for r in (tested, listed, described, gone))


def test_a_draft_whose_source_is_not_known_yet_or_not_whole_says_so(api: Client) -> None:
    half = {"source_kind": "postgresql", "source_params": {"host": "h"}}
    for fields, wanted in (({"name": "half"}, "kind"), (half, "source.database")):
        draft = api.post("/api/v1/drafts/", fields, JSON).json()
        for look in ("source/tables", "connections/test"):
            said = api.post(f"/api/v1/drafts/{draft['id']}/{look}/", {}, JSON)
            assert said.status_code == 400
            assert wanted in json.dumps(said.json()), said.json()


def test_a_definition_is_assessed(api: Client) -> None:
    report = api.post("/api/v1/assess/", config_fields(), JSON)
    assert report.status_code == 200
    assert {"tables", "problems", "assessed_at", "has_errors"} == set(report.json())


def test_the_committed_schema_is_the_one_the_code_has(tmp_path: Path, settings: Any) -> None:
    made = tmp_path / "openapi.yaml"
    call_command("spectacular", "--validate", "--fail-on-warn", file=str(made))
    committed = settings.BASE_DIR / "docs" / "openapi.yaml"
    assert committed.read_text() == made.read_text(), "run `make openapi`"
