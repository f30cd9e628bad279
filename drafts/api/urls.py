"""Routes under /api/v1/ of this app."""

from __future__ import annotations

from django.urls import path
from rest_framework.routers import SimpleRouter

from drafts.api.replicators import DeployedViewSet
from drafts.api.statements import Changefeeds
from drafts.api.tables import ReplicatorTables
from drafts.api.views import DraftViewSet
from runners.api import subscribers, verifications
from runners.api.change_log import TableChangeFiles, TableChanges

router = SimpleRouter(use_regex_path=False)
router.register("drafts", DraftViewSet, basename="draft")
router.register("replicators", DeployedViewSet, basename="replicator")

urlpatterns = [
    path("changefeeds/", Changefeeds.as_view(), name="changefeeds"),
    path("replicators/<uuid:pk>/tables/", ReplicatorTables.as_view(), name="tables"),
    *verifications.urlpatterns,
    *subscribers.urlpatterns,
    path("replicators/<uuid:pk>/tables/changes/", TableChanges.as_view(), name="changes"),
    path(
        "replicators/<uuid:pk>/tables/changes/files/",
        TableChangeFiles.as_view(),
        name="change-files",
    ),
    *router.urls,
]
