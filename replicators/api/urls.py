"""Routes under /api/v1/ of this app."""

from __future__ import annotations

from django.urls import path

from replicators.api import audit, views

urlpatterns = [
    path("", views.Index.as_view(), name="index"),
    path("audit/", audit.AuditTrail.as_view(), name="audit"),
    path("plugins/", views.PluginList.as_view(), name="plugins"),
    path("plugins/<str:role>/<str:name>/", views.PluginDetail.as_view(), name="plugin"),
]
