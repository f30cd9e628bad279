"""The error code `target:rewind-shape` is `target:rewind-schema`."""

from typing import Any

from django.db import migrations

OLD, NEW = "target:rewind-shape", "target:rewind-schema"
PLACES = (
    ("Run", "error_code"),
    ("Progress", "error_code"),
    ("Table", "error_code"),
    ("Event", "code"),
)


def rename_code(apps: Any, editor: Any) -> None:
    """Give stored errors and events the new code."""
    for model, name in PLACES:
        rows = apps.get_model("runners", model)._default_manager
        rows.filter(**{name: OLD}).update(**{name: NEW})


class Migration(migrations.Migration):
    dependencies = [("runners", "0017_table_schema")]

    operations = [migrations.RunPython(rename_code, migrations.RunPython.noop)]
