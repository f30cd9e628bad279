"""A target suggests how often a table is merged: the wizard shows it, and a replicator takes it
where nobody typed another number."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from django.test import Client

from drafts.models import Draft
from replicators.config import suggested_for
from replicators.models import Replicator
from replicators.services import replicator_create, replicator_update
from replicators.targets.files.params import LENGTHS, FilesParams
from runners.engine.settings import RunnerSettings
from runners.supervision.jobs import settings_of
from tests.app.factories import config_fields, make_replicator
from tests.app.pages import page
from tests.app.wizarding import address, make_draft, press

pytestmark = pytest.mark.django_db


@pytest.fixture
def files(tmp_path: Path) -> dict[str, Any]:
    """A files target with buckets of five minutes, which suggests 50 s."""
    params = {"location": str(tmp_path / "changes"), "bucket": "5 minutes"}
    return {"target_kind": "files", "target_params": params}


def test_a_bucket_has_about_six_files_of_a_table_or_one_a_minute() -> None:
    """Guards `FilesParams.merge_seconds`: at one second a table has 3,600 files an hour, and a
    longer time than the bucket closes it late."""
    found = {b: FilesParams("/data", bucket=b).merge_seconds for b in LENGTHS}
    assert found["10 seconds"] == 1 and found["1 minute"] == 10 and found["1 day"] == 60
    assert all(seconds <= LENGTHS[b] for b, seconds in found.items())


def test_a_new_replicator_has_the_interval_that_its_target_suggests(files: dict[str, Any]) -> None:
    """Guards `ReplicatorConfig.parse`: the suggestion is a default, so a typed number wins, and an
    option that is taken back to its default has the suggestion again."""
    made = replicator_create(actor=None, **config_fields(**files))
    assert made.options["merge_seconds"] == 50 == settings_of(made).merge_seconds
    fields = config_fields(**files, name="typed", options={"merge_seconds": 2.0})
    typed = replicator_create(actor=None, **fields)
    assert typed.options["merge_seconds"] == 2
    back = replicator_update(replicator=typed, actor=None, options={"merge_seconds": None})
    assert back.options["merge_seconds"] == 50
    plain = replicator_create(actor=None, **config_fields(name="memory"))
    assert plain.options["merge_seconds"] == 1


def test_a_target_that_is_not_complete_yet_suggests_nothing() -> None:
    assert suggested_for("files", {}) == {}
    assert suggested_for("", {}) == {}
    assert suggested_for("files", {"location": "/data"}) == {"merge_seconds": 10.0}


def test_the_wizard_shows_the_targets_interval_and_does_not_pin_it(
    browser: Client, editor: Any, files: dict[str, Any]
) -> None:
    """Guards `options_from`: the form sends every field back. A default that was stored as a typed
    number would stay when another target is chosen."""
    draft = make_draft(editor, **files)
    html = page(browser, address(draft, "advanced"))
    assert "default 50<br>" in html and 'name="options.merge_seconds" value="50"' in html
    press(browser, draft, "advanced", "next", **{"options.merge_seconds": "50"})
    assert "merge_seconds" not in Draft.objects.get(pk=draft.pk).options
    assert "50 seconds" in page(browser, address(draft, "summary"))
    press(browser, draft, "advanced", "next", **{"options.merge_seconds": "1"})
    assert Draft.objects.get(pk=draft.pk).options["merge_seconds"] == "1"


def test_the_page_that_edits_a_replicator_names_the_same_default(
    browser: Client, files: dict[str, Any]
) -> None:
    made = replicator_create(actor=None, **config_fields(**files))
    html = page(browser, f"/replicators/{made.pk}/edit/")
    assert "default 50<br>" in html and 'name="options.merge_seconds" value="50"' in html
    assert Replicator.objects.get().options["merge_seconds"] == 50


def test_a_replicator_may_have_a_budget_of_memory_of_its_own(settings: Any) -> None:
    """Guards the memory budget beside that of the disk: it bounds the JVM, and what tasks hold of
    changes; a large one never makes more of it than the settings say. 0 changes nothing."""
    settings.RUNNER = RunnerSettings()
    made = make_replicator(options={"memory_megabytes": 1024})
    small = settings_of(made)
    assert small.spark_driver_memory == "512m" and small.row_limit_bytes == 16 << 20
    assert small.seal_bytes == small.task_bytes == 32 << 20
    made.options = {"memory_megabytes": 100_000}
    large = settings_of(made)
    assert large.spark_driver_memory == "50000m"
    assert (large.seal_bytes, large.task_bytes, large.row_limit_bytes) == (
        64 << 20, 64 << 20, 32 << 20)  # fmt: skip
    made.options = {"memory_megabytes": 1}
    assert settings_of(made).spark_driver_memory == "512m"
    made.options = {}
    assert settings_of(made).spark_driver_memory == "1g"


def test_a_replicator_may_have_a_limit_of_its_own(editor: Any, settings: Any) -> None:
    """Guards the disk budget of one replicator beside that of all; 0 is that of all."""
    made = make_replicator(options={"log_gigabytes": 2.5})
    assert settings_of(made).log_limit_bytes == 2_500_000_000
    made.options = {"log_gigabytes": 0}
    assert settings_of(made).log_limit_bytes == settings.RUNNER.log_limit_bytes
