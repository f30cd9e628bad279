"""The routes of the project: pages of each app, and REST under /api/v1/."""

from __future__ import annotations

from django.contrib import admin
from django.urls import URLPattern, URLResolver, include, path
from django.views.generic import RedirectView
from drf_spectacular.utils import extend_schema
from drf_spectacular.views import SpectacularAPIView

from replicators.api.permissions import ViewOrEdit
from replicators.views import admin_login
from runners.api.metrics import Metrics

_SCHEMA = extend_schema(exclude=True)(SpectacularAPIView)
_REST = [path("", include(f"{app}.api.urls")) for app in ("replicators", "assessments", "drafts")]

urlpatterns: list[URLPattern | URLResolver] = [
    path("", include("replicators.urls")),
    path("", include("drafts.urls")),
    path("", include("runners.pages.urls")),
    path("api/schema/", _SCHEMA.as_view(permission_classes=[ViewOrEdit]), name="api-schema"),
    path("api/v1/", include((_REST, "api"))),
    path("admin/login/", admin_login),
    path(
        "admin/password_change/", RedirectView.as_view(pattern_name="account")
    ),  # guesses there count
    path("metrics", Metrics.as_view(), name="metrics"),
    path("admin/", admin.site.urls),
]
handler400 = "replicators.project.errors.bad_request"
handler404 = "replicators.project.errors.not_found"
handler500 = "replicators.project.errors.server_error"
