"""The tables of a source that nobody chose: a model of its own, written by `discovery` only."""

from __future__ import annotations

from django.db import models

from replicators.models import Replicator


class NewTable(models.Model):
    """A table of the source that nobody chose, in a schema that is copied from; `is_ignored`: nobody is asked about it. Only
    `discovery` writes it."""

    replicator = models.ForeignKey(Replicator, on_delete=models.CASCADE, related_name="new_tables")
    schema_name = models.CharField(max_length=255)
    name = models.CharField(max_length=255)
    is_ignored = models.BooleanField(default=False)
    found_at = models.DateTimeField(auto_now_add=True)

    class Meta:
        ordering = ("schema_name", "name")
        constraints = (
            models.UniqueConstraint(
                fields=["replicator", "schema_name", "name"], name="one_question_per_table"
            ),
        )

    def __str__(self) -> str:
        return f"{self.schema_name}.{self.name}"
