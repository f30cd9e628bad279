from typing import Any

from django.db import migrations, models


def fill(apps: Any, schema_editor: Any) -> None:
    """Reports that are stored already, by what they say of their columns."""
    stored_reports = apps.get_model("drafts", "StoredReport")
    for stored in stored_reports.objects.only("pk", "report").iterator(50):
        found = [
            [table["schema"], table["name"], column["name"]]
            for table in stored.report.get("tables", ())
            for column in table.get("columns", ())
            if column.get("support") != "YES"
        ]
        if found:
            stored_reports.objects.filter(pk=stored.pk).update(doubtful=found)


class Migration(migrations.Migration):
    dependencies = [
        ("drafts", "0002_wizard"),
    ]

    operations = [
        migrations.AddField(
            model_name="storedreport",
            name="doubtful",
            field=models.JSONField(default=list),
        ),
        migrations.RunPython(fill, migrations.RunPython.noop),
    ]
