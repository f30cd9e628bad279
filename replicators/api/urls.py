"""Routes under /api/v1/ of this app."""

from __future__ import annotations

from django.urls import path
from rest_framework.routers import SimpleRouter

from replicators.api import audit, views
from replicators.api.tokens import TokenViewSet
from replicators.api.users import UserViewSet

router = SimpleRouter(use_regex_path=False)
router.register("tokens", TokenViewSet, basename="token")
router.register("users", UserViewSet, basename="user")

urlpatterns = [
    path("", views.Index.as_view(), name="index"),
    path("audit/", audit.AuditTrail.as_view(), name="audit"),
    path("plugins/", views.PluginList.as_view(), name="plugins"),
    path("plugins/<str:role>/<str:name>/", views.PluginDetail.as_view(), name="plugin"),
    *router.urls,
]
