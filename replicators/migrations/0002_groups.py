"""Makes the groups `viewer` and `editor`."""

from __future__ import annotations

from django.db import migrations
from django.db.backends.base.schema import BaseDatabaseSchemaEditor
from django.db.migrations.state import StateApps

GROUPS = {
    "viewer": ("view_replicator",),
    "editor": ("view_replicator", "change_replicator"),
}


def make_groups(apps: StateApps, schema_editor: BaseDatabaseSchemaEditor) -> None:
    """Idempotent; the permissions themselves are otherwise made only after the last migration."""
    kind, _ = apps.get_model("contenttypes", "ContentType").objects.get_or_create(
        app_label="replicators", model="replicator"
    )
    permission = apps.get_model("auth", "Permission")
    names = {"view_replicator": "Can view replicator", "change_replicator": "Can change replicator"}
    made = {
        codename: permission.objects.get_or_create(
            content_type=kind, codename=codename, defaults={"name": name}
        )[0]
        for codename, name in names.items()
    }
    for group, codenames in GROUPS.items():
        row, _ = apps.get_model("auth", "Group").objects.get_or_create(name=group)
        row.permissions.add(*(made[c] for c in codenames))


class Migration(migrations.Migration):
    """Groups."""

    dependencies = [
        ("replicators", "0001_initial"),
        ("auth", "0012_alter_user_first_name_max_length"),
        ("contenttypes", "0002_remove_content_type_name"),
    ]

    operations = [migrations.RunPython(make_groups, migrations.RunPython.noop)]
