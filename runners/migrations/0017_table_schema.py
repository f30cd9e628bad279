"""What a table looks like is its schema in every name."""

from django.db import migrations


class Migration(migrations.Migration):
    dependencies = (("runners", "0016_chunk_spec"),)

    operations = (
        migrations.RenameField("table", "shape", "schema"),
        migrations.RenameField("table", "shape_sequence", "schema_sequence"),
        migrations.RenameField("changefile", "shape", "schema"),
        migrations.RenameField("snapshotcopy", "shape", "schema"),
    )
