"""Routes under /api/v1/ of this app."""

from __future__ import annotations

from django.urls import path

from assessments.api import views

urlpatterns = [
    path("connections/test/", views.ConnectionTest.as_view(), name="connection-test"),
    path("sources/tables/", views.SourceTables.as_view(), name="source-tables"),
    path("sources/tables/describe/", views.SourceTable.as_view(), name="source-table"),
    path("assess/", views.Assess.as_view(), name="assess"),
]
