"""Routes of the pages of what runs."""

from __future__ import annotations

from django.urls import path

from runners import acts, records, views

app_name = "runners"
_ONE = "replicators/<uuid:pk>/"

urlpatterns = [
    path("", views.replicators, name="replicators"),
    path("health/", views.banner, name="health"),
    path("activity/", records.activity, name="activity"),
    path(_ONE, views.replicator, name="replicator"),
    path(f"{_ONE}head/", views.head, name="replicator-head"),
    path(f"{_ONE}charts/", views.charts, name="replicator-charts"),
    path(f"{_ONE}tables/", views.tables, name="replicator-tables"),
    path(f"{_ONE}logs/", records.log, name="replicator-logs"),
    path(f"{_ONE}activity/", records.replicator_activity, name="replicator-activity"),
    path(f"{_ONE}configuration/", records.configuration, name="replicator-configuration"),
    path(f"{_ONE}start/", acts.start, name="replicator-start"),
    path(f"{_ONE}pause/", acts.pause, name="replicator-pause"),
    path(f"{_ONE}resume/", acts.resume, name="replicator-resume"),
    path(f"{_ONE}retry/", acts.retry, name="replicator-retry"),
    path(f"{_ONE}delete/", acts.delete, name="replicator-delete"),
    path(f"{_ONE}tables/resync/", acts.table_resync, name="table-resync"),
    path(f"{_ONE}tables/remove/", acts.table_remove, name="table-remove"),
    path(f"{_ONE}tables/rewind/", acts.table_rewind, name="table-rewind"),
    path(f"{_ONE}tables/ignore/", acts.new_table_ignore, name="new-table-ignore"),
    path(f"{_ONE}tables/retry/", acts.table_retry, name="table-retry"),
    path(f"{_ONE}tables/parked/", records.parked, name="table-parked"),
    path(f"{_ONE}tables/replay/", acts.table_replay, name="table-replay"),
]
