"""Routes of the pages of what runs."""

from __future__ import annotations

from django.urls import path

from runners.pages import actions, history, subscribers, verify, views

app_name = "runners"
_ONE = "replicators/<uuid:pk>/"

urlpatterns = [
    path("", views.replicators, name="replicators"),
    path("health/", views.banner, name="health"),
    path("activity/", history.activity, name="activity"),
    path(_ONE, views.replicator, name="replicator"),
    path(f"{_ONE}head/", views.head, name="replicator-head"),
    path(f"{_ONE}charts/", views.charts, name="replicator-charts"),
    path(f"{_ONE}tables/", views.tables, name="replicator-tables"),
    path(f"{_ONE}logs/", history.log, name="replicator-logs"),
    path(f"{_ONE}activity/", history.replicator_activity, name="replicator-activity"),
    path(f"{_ONE}configuration/", history.configuration, name="replicator-configuration"),
    path(f"{_ONE}conflicts/", history.conflicts, name="replicator-conflicts"),
    path(f"{_ONE}verify/", verify.verify, name="replicator-verify"),
    path(f"{_ONE}verify/start/", verify.verify_start, name="verify-start"),
    path(f"{_ONE}verify/schedule/", verify.verify_schedule, name="verify-schedule"),
    path(f"{_ONE}verify/<uuid:verification>/cancel/", verify.verify_cancel, name="verify-cancel"),
    path(f"{_ONE}verify/<uuid:verification>/rows/", verify.verify_rows, name="verify-rows"),
    path(f"{_ONE}verify/<uuid:verification>/repair/", verify.verify_repair, name="verify-repair"),
    path(f"{_ONE}subscribers/", subscribers.subscribers, name="replicator-subscribers"),
    path(f"{_ONE}subscribers/register/", subscribers.register, name="subscriber-register"),
    path(
        f"{_ONE}subscribers/<uuid:subscriber>/remove/",
        subscribers.remove,
        name="subscriber-remove",
    ),
    path(f"{_ONE}start/", actions.start, name="replicator-start"),
    path(f"{_ONE}pause/", actions.pause, name="replicator-pause"),
    path(f"{_ONE}resume/", actions.resume, name="replicator-resume"),
    path(f"{_ONE}retry/", actions.retry, name="replicator-retry"),
    path(f"{_ONE}delete/", actions.delete, name="replicator-delete"),
    path(f"{_ONE}tables/resync/", actions.table_resync, name="table-resync"),
    path(f"{_ONE}tables/add/", actions.table_add, name="table-add"),
    path(f"{_ONE}tables/remove/", actions.table_remove, name="table-remove"),
    path(f"{_ONE}tables/rewind/", actions.table_rewind, name="table-rewind"),
    path(f"{_ONE}tables/ignore/", actions.new_table_ignore, name="new-table-ignore"),
    path(f"{_ONE}tables/retry/", actions.table_retry, name="table-retry"),
    path(f"{_ONE}tables/quarantined/", history.quarantined, name="table-quarantined"),
    path(f"{_ONE}tables/replay/", actions.table_replay, name="table-replay"),
]
