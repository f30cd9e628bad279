"""Routes of the pages of drafts."""

from __future__ import annotations

from django.urls import path

from drafts import acts, copies, views

app_name = "drafts"

urlpatterns = [
    path("replicators/new/", views.form, name="new"),
    path("drafts/", views.drafts, name="drafts"),
    path("replicators/<uuid:pk>/duplicate/", copies.duplicate, name="duplicate"),
    path("drafts/<uuid:pk>/", views.form, name="draft"),
    path("drafts/<uuid:pk>/delete/", views.delete, name="draft-delete"),
    path("replicators/<uuid:pk>/tables/add/", acts.table_add, name="table-add"),
]
