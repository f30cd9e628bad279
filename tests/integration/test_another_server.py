"""A replicator's connection is changed: the place of its log is known under another address and
login, and nowhere else."""

from __future__ import annotations

import pytest

from replicators.models import Replicator
from replicators.services import params_of
from runners.definition import AnotherServer, replicator_change
from runners.models import Progress
from runners.services import progress_of
from tests.app.factories import make_replicator
from tests.integration.postgresql_source import begin, describe
from tests.servers import Database, fresh_database

pytestmark = [pytest.mark.integration, pytest.mark.timeout(120), pytest.mark.django_db]


@pytest.fixture
def followed(database: Database) -> Replicator:
    """A replicator whose log began at a table of this database."""
    database.execute("CREATE TABLE orders (id int PRIMARY KEY)")
    made = make_replicator(
        source_kind="postgresql",
        source_params=database.params,
        tables=[{"schema": "public", "name": "orders"}],
    )
    reader, session = begin(database, made.slot_name, describe(database, "orders"))
    session.close()
    reader.close()
    progress_of(made)
    Progress.objects.filter(replicator=made).update(position=session.point.position.to_json())
    return made


def change(replicator: Replicator, **params: object) -> tuple[str, ...]:
    """With the password, which a changed address asks for."""
    known = params_of(Replicator.objects.get(pk=replicator.pk), "source")
    asked = {"password": known.get("password"), **params}
    return replicator_change(replicator=replicator, actor=None, source_params=asked).fields


def test_the_same_log_goes_on_under_another_login_and_is_not_looked_for_where_nobody_answers(
    followed: Replicator, database: Database
) -> None:
    """Guards what `assessments.services.log_fault` lets pass: the slot's place is found again under
    another login, and a source that does not answer says nothing against it; fails where every new
    address, or every error, counts as another server."""
    database.user(f"{database.name}_reader", "LOGIN SUPERUSER")
    assert change(followed, user=f"{database.name}_reader") == ("source.user",)
    assert change(followed, port=1) == ("source.port",), "not known to be another server"
    followed.refresh_from_db()
    assert params_of(followed, "source")["port"] == 1


def test_another_database_and_a_lost_slot_are_refused_before_anything_is_stored(
    followed: Replicator, database: Database
) -> None:
    """Guards the look at the source before a change is stored; fails where `_require_log` is left
    out. A run would drop the slot and begin its log anew: what a wrong name in a form must not
    do."""
    with fresh_database(database.server) as other, pytest.raises(AnotherServer) as caught:
        change(followed, database=other.name)
    assert set(caught.value.errors) == {"source.database"}
    assert "belongs to something else" in caught.value.message.text
    assert followed == Replicator.objects.get(source_params__database=database.name)
    slots = database.execute(
        "SELECT slot_name FROM pg_replication_slots WHERE database = %s", [database.name]
    )
    assert slots == [(followed.slot_name,)], "the look changes nothing at the source"
    database.execute("SELECT pg_drop_replication_slot(%s)", [followed.slot_name])
    with pytest.raises(AnotherServer, match="slot gone"):
        change(followed, sslmode="disable")
