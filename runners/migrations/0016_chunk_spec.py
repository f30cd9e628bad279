"""A chunk is what its source says, as JSON: the queries of snapshots that are going on become texts in it."""

from typing import Any

from django.db import migrations, models


def keep_queries(apps: Any, schema_editor: Any) -> None:
    chunks = apps.get_model("runners", "SnapshotChunk").objects
    for chunk in chunks.iterator(chunk_size=1000):
        chunks.filter(pk=chunk.pk).update(spec=chunk.query)


def give_back(apps: Any, schema_editor: Any) -> None:
    chunks = apps.get_model("runners", "SnapshotChunk").objects
    for chunk in chunks.iterator(chunk_size=1000):
        chunks.filter(pk=chunk.pk).update(query=chunk.spec if isinstance(chunk.spec, str) else "")


class Migration(migrations.Migration):
    dependencies = [
        ("runners", "0015_quarantined_rows"),
    ]

    operations = [
        migrations.AddField("snapshotchunk", "spec", models.JSONField(null=True)),
        migrations.AlterField("snapshotchunk", "query", models.TextField(default="")),
        migrations.RunPython(keep_queries, give_back),
        migrations.RemoveField("snapshotchunk", "query"),
    ]
