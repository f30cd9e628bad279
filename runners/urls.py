"""Routes of the pages of what runs."""

from __future__ import annotations

from django.urls import path

from runners import acts, views

app_name = "runners"
_ONE = "replicators/<uuid:pk>/"

urlpatterns = [
    path("", views.replicators, name="replicators"),
    path("activity/", views.activity, name="activity"),
    path(_ONE, views.replicator, name="replicator"),
    path(f"{_ONE}log/", views.log, name="replicator-log"),
    path(f"{_ONE}activity/", views.replicator_activity, name="replicator-activity"),
    path(f"{_ONE}configuration/", views.configuration, name="replicator-configuration"),
    path(f"{_ONE}start/", acts.start, name="replicator-start"),
    path(f"{_ONE}pause/", acts.pause, name="replicator-pause"),
    path(f"{_ONE}resume/", acts.resume, name="replicator-resume"),
    path(f"{_ONE}delete/", acts.delete, name="replicator-delete"),
    path(f"{_ONE}tables/resync/", acts.table_resync, name="table-resync"),
    path(f"{_ONE}tables/retry/", acts.table_retry, name="table-retry"),
]
