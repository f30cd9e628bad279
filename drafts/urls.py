"""Routes of the pages of drafts."""

from __future__ import annotations

from django.urls import path

from drafts import (
    adding,
    copies,
    definition_pages,
    report_pages,
    statement_pages,
    table_columns,
    table_pages,
    views,
)

app_name = "drafts"

urlpatterns = [
    path("replicators/new/", views.new, name="new"),
    path("drafts/", views.drafts, name="drafts"),
    path("replicators/<uuid:pk>/duplicate/", copies.duplicate, name="duplicate"),
    path("replicators/<uuid:pk>/edit/", definition_pages.edit, name="replicator-edit"),
    path("drafts/<uuid:pk>/", views.resume, name="draft"),
    path("drafts/<uuid:pk>/delete/", views.delete, name="draft-delete"),
    path("statements/", statement_pages.statements, name="statements"),
    path("replicators/<uuid:pk>/statement/", statement_pages.statement_card, name="statement"),
    path("replicators/<uuid:pk>/tables/pick/", adding.tables_pick, name="tables-pick"),
    path(
        "replicators/<uuid:pk>/tables/columns/", table_columns.table_columns, name="table-columns"
    ),
    path("drafts/<uuid:pk>/name/", views.name, name="draft-name"),
    path("drafts/<uuid:pk>/source/", views.connector, {"role": "source"}, name="draft-source"),
    path("drafts/<uuid:pk>/target/", views.connector, {"role": "target"}, name="draft-target"),
    path("drafts/<uuid:pk>/tables/", table_pages.tables, name="draft-tables"),
    path("drafts/<uuid:pk>/tables/columns/", table_pages.columns, name="draft-columns"),
    path("drafts/<uuid:pk>/advanced/", views.advanced, name="draft-advanced"),
    path("drafts/<uuid:pk>/assessment/", report_pages.assessment, name="draft-assessment"),
    path("drafts/<uuid:pk>/summary/", report_pages.summary, name="draft-summary"),
]
