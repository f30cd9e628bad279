"""Routes under /api/v1/ of this app."""

from __future__ import annotations

from rest_framework.routers import SimpleRouter

from runners.api.views import ReplicatorViewSet

router = SimpleRouter(use_regex_path=False)
router.register("replicators", ReplicatorViewSet, basename="replicator")

urlpatterns = router.urls
