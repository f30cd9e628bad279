"""What people change on the pages about a replicator that was deployed, where it has to be assessed first."""

from __future__ import annotations

from django.http import HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404
from django.views.decorators.http import require_POST

from drafts.services import TableRefused, replicator_table_add
from replicators.connectors.model.schema import TableId, TableSelection
from replicators.connectors.problems.problem import Severity
from replicators.models import Replicator
from replicators.pages import may_edit
from replicators.people import person
from runners.models import Table
from runners.pages.actions import answer
from runners.services import IllegalTransition
from runners.tables.discovery import tables_asked


@may_edit
@require_POST
def table_add(request: HttpRequest, pk: str) -> HttpResponse:
    """Copy a table too; the first error of the assessment is the refusal's reason."""
    found = get_object_or_404(Replicator, pk=pk)
    table = TableId(request.POST.get("schema", ""), request.POST.get("table", ""))
    if table not in {TableId(t.schema_name, t.name) for t in tables_asked(found)}:  # it was typed
        table = TableId(table.schema.strip(), table.name.strip())

    def act() -> Table:
        try:
            return replicator_table_add(
                replicator=found, selection=TableSelection(table), actor=person(request)
            )
        except TableRefused as err:
            first = next(p for p in err.problems if p.severity is Severity.ERROR).message
            text = f"{first.text} {first.suggestion}"
            raise IllegalTransition("refused", "table_add_asked", message=text) from err

    done = f"{table} will be copied, then followed."
    return answer(request, found, act, done, f"{table} was not added")
