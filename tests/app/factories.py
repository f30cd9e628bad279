"""Plain functions that make rows for tests, through the services where there is one."""

from __future__ import annotations

import uuid
from importlib import import_module
from typing import Any

from django.apps import apps
from django.contrib.auth.models import Group, User
from django.db import connection

from replicators.models import Replicator
from replicators.services import replicator_create
from runners.models import Run
from runners.services import progress_of, tables_sync

PASSWORD = "correct-horse-battery"
SECRET = "s3cret-of-the-source"


def make_user(name: str, *groups: str, **fields: Any) -> User:
    """A user in these groups. They come with a migration, and go with the first test that has
    transactions of its own."""
    if groups and not Group.objects.filter(name__in=groups).exists():
        migration = import_module("replicators.migrations.0002_groups")
        migration.make_groups(apps, connection.schema_editor())
        migration = import_module("replicators.migrations.0010_make_feeds")
        migration.make_group(apps, connection.schema_editor())
    user = User.objects.create_user(name, password=PASSWORD, **fields)
    user.groups.add(*Group.objects.filter(name__in=groups))
    return user


def config_fields(name: str = "shop to lakehouse", **changes: Any) -> dict[str, Any]:
    """What a person enters for a replicator of the in-memory pair."""
    return {
        "name": name,
        "source_kind": "memory",
        "source_params": {"host": "db.example", "password": SECRET},
        "target_kind": "memory",
        "target_params": {"namespace": "shop"},
        "tables": [{"schema": "shop", "name": "orders"}, {"schema": "shop", "name": "customers"}],
        "options": {},
        **changes,
    }


def make_replicator(name: str = "shop to lakehouse", **changes: Any) -> Replicator:
    """A paused replicator with its tables."""
    replicator = replicator_create(actor=None, **config_fields(name, **changes))
    tables_sync(replicator)
    progress_of(replicator)
    return replicator


def make_run(replicator: Replicator, **fields: Any) -> Run:
    """A live run that holds a lease."""
    return Run.objects.create(replicator=replicator, **{"lease": uuid.uuid4().hex, **fields})
