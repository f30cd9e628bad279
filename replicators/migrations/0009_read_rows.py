"""The permission to read rows of copied tables."""

from django.db import migrations


class Migration(migrations.Migration):
    dependencies = (("replicators", "0008_token_end_recorded"),)

    operations = (
        migrations.AlterModelOptions(
            name="replicator",
            options={
                "ordering": ("name",),
                "permissions": (("read_rows", "Can read rows of copied tables"),),
            },
        ),
    )
