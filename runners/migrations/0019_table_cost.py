"""What a table's merges use of a service that counts or charges."""

from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = (("runners", "0018_rewind_schema_code"),)

    operations = (
        migrations.AddField("table", "spent", models.JSONField(default=dict, blank=True)),
        migrations.AddField(
            "table", "scanned_bytes", models.BigIntegerField(null=True, blank=True)
        ),
        migrations.AddField("table", "is_pruned", models.BooleanField(default=True)),
    )
