"""The permission to make feeds, and the group `feed-maker`."""

from __future__ import annotations

from django.db import migrations
from django.db.backends.base.schema import BaseDatabaseSchemaEditor
from django.db.migrations.state import StateApps

GROUP = "feed-maker"
NAMES = {
    "view_replicator": "Can view replicator",
    "make_feeds": "Can make feeds of tables that a source's user may read",
}


def make_group(apps: StateApps, schema_editor: BaseDatabaseSchemaEditor) -> None:
    """Idempotent."""
    kind, _ = apps.get_model("contenttypes", "ContentType").objects.get_or_create(
        app_label="replicators", model="replicator"
    )
    row, _ = apps.get_model("auth", "Group").objects.get_or_create(name=GROUP)
    for codename, name in NAMES.items():
        permission, _ = apps.get_model("auth", "Permission").objects.get_or_create(
            content_type=kind, codename=codename, defaults={"name": name}
        )
        row.permissions.add(permission)


class Migration(migrations.Migration):
    dependencies = (("replicators", "0009_read_rows"),)

    operations = (
        migrations.AlterModelOptions(
            name="replicator",
            options={
                "ordering": ("name",),
                "permissions": (
                    ("read_rows", "Can read rows of copied tables"),
                    ("make_feeds", "Can make feeds of tables that a source's user may read"),
                ),
            },
        ),
        migrations.RunPython(make_group, migrations.RunPython.noop),
    )
