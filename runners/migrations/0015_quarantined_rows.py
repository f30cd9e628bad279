"""Rows are quarantined, not parked: the model, its column of counts, and the words kept in JSON."""

from typing import Any

from django.db import migrations, models

CODES = {
    "log:rows-parked": "log:rows-quarantined",
    "log:too-many-parked": "log:too-many-quarantined",
    "target:rewind-parked": "target:rewind-quarantined",
    "source:no-parking": "source:no-quarantine",
    "target:mode-parking": "target:mode-quarantine",
    "source:view-waits": "source:snapshot-waits",
}
KEYS = {"unfit": "unsupported", "unfit_values": "unsupported_values"}


def renamed(value: Any) -> Any:
    """The same options, tables or report with the new names."""
    if isinstance(value, list):
        return [renamed(item) for item in value]
    if isinstance(value, dict):
        return {
            KEYS.get(name, name): "quarantine" if name in KEYS and item == "park" else renamed(item)
            for name, item in value.items()
        }
    return CODES.get(value, value) if isinstance(value, str) else value


def rename_values(apps: Any, editor: Any) -> None:
    """Rewrite what is kept under the old names. What was written down of the past stays as it was."""
    kept = (
        ("replicators", "Replicator", ("options", "tables")),
        ("drafts", "Draft", ("options", "tables")),
        ("drafts", "StoredReport", ("report",)),
    )
    for app, model, fields in kept:
        for row in apps.get_model(app, model)._default_manager.iterator():
            old = {name: getattr(row, name) for name in fields}
            new = {name: renamed(value) for name, value in old.items()}
            if new != old:
                type(row)._default_manager.filter(pk=row.pk).update(**new)
    for model, name in (
        ("Run", "error_code"),
        ("Progress", "error_code"),
        ("Table", "error_code"),
        ("Event", "code"),
    ):
        rows = apps.get_model("runners", model)._default_manager
        for code, now in CODES.items():
            rows.filter(**{name: code}).update(**{name: now})


class Migration(migrations.Migration):
    dependencies = [
        ("runners", "0014_resolved_at"),
        ("drafts", "0004_replicator_listing"),
        ("replicators", "0006_tries"),
    ]

    operations = [
        migrations.RenameModel("ParkedRow", "QuarantinedRow"),
        migrations.RenameField("table", "rows_parked", "rows_quarantined"),
        migrations.AlterField(
            "quarantinedrow",
            "table",
            models.ForeignKey(
                on_delete=models.deletion.CASCADE, related_name="quarantined", to="runners.table"
            ),
        ),
        migrations.RemoveConstraint("quarantinedrow", "one_parked_row_per_sequence"),
        migrations.AddConstraint(
            "quarantinedrow",
            models.UniqueConstraint(
                fields=["table", "generation", "sequence"], name="one_quarantined_row_per_sequence"
            ),
        ),
        migrations.RunPython(rename_values, migrations.RunPython.noop),
    ]
