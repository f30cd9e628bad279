"""What is said of a replicator that does not run: its error, how often it was tried, and what comes
next."""

from __future__ import annotations

import re
from datetime import timedelta
from typing import Any

import pytest
from django.test import Client
from django.utils import timezone

from replicators.connectors.problems.lookup import messages
from replicators.connectors.problems.message import Retry, Scope
from replicators.models import Replicator
from runners.models import Progress, Run
from runners.services import replicator_pause
from runners.states import RunState
from tests.app.factories import make_run
from tests.app.pages import page

pytestmark = pytest.mark.django_db


def make_failing(replicator: Replicator, code: str, **progress: Any) -> None:
    """Five runs have failed of that, the first of them three hours ago."""
    now = timezone.now()
    Replicator.objects.filter(pk=replicator.pk).update(desired_state="running")
    make_run(replicator, state=RunState.FAILED, started_at=now, error_code=code)
    Progress.objects.filter(replicator=replicator).update(
        **{
            "error_code": code,
            "error_facts": {"name_of_error": "OSError", "host": "h", "port": "1"},
            "failing_since": now - timedelta(hours=3),
            "failures": 5,
            **progress,
        }
    )


def error_by_rest(browser: Client) -> Any:
    return browser.get("/api/v1/replicators/").json()["results"][0]["error"]


@pytest.mark.parametrize("code", ["internal:unexpected", "run:lost", "run:spark"])
def test_what_is_given_up_is_not_said_to_be_tried_again(
    code: str, browser: Client, replicator: Replicator
) -> None:
    """Guards the error of a replicator whose retry time is used up: its usual advice was to wait
    for the next try."""
    make_failing(replicator, code, is_given_up=True)
    html = page(browser, replicator.get_absolute_url())
    assert "It is tried again" not in html and "by itself" not in html
    assert "press Retry now" in html
    assert "5 tries failed; it is not tried again until somebody presses Retry now." in html
    assert error_by_rest(browser)["suggestion"].endswith("then press Retry now.")


def test_what_a_person_can_mend_keeps_its_advice(browser: Client, replicator: Replicator) -> None:
    make_failing(replicator, "source:unreachable", is_given_up=True)
    assert error_by_rest(browser)["suggestion"].startswith("Check host and port")


def test_tries_are_counted_and_the_next_is_reported(
    browser: Client, replicator: Replicator
) -> None:
    """Guards that a person sees how often it failed."""
    make_failing(replicator, "run:lost", retry_at=timezone.now() + timedelta(seconds=40))
    html = page(browser, replicator.get_absolute_url() + "logs/")
    assert "5 tries failed; the next is <time" in html
    assert "by itself" in html


@pytest.mark.parametrize("state", [RunState.STOPPING, RunState.STOPPED])
def test_an_error_that_a_later_run_outlived_is_not_shown_of_a_paused_one(
    state: RunState, browser: Client, replicator: Replicator
) -> None:
    """Guards the last run's own end: failures count for ten minutes, and a pause within them
    brought back the old error."""
    make_failing(replicator, "source:unreachable")
    run = make_run(replicator, state=RunState.RUNNING, started_at=timezone.now())
    replicator_pause(replicator=replicator, actor=None)
    Run.objects.filter(pk=run.pk).update(state=state)
    html = page(browser, replicator.get_absolute_url())
    assert "source:unreachable" not in html and "tries failed" not in html
    assert error_by_rest(browser) is None


def test_the_error_of_a_failed_run_stays_while_paused(
    browser: Client, replicator: Replicator
) -> None:
    """Also where a next run was stopped before it had begun."""
    make_failing(replicator, "source:unreachable")
    make_run(replicator, state=RunState.STOPPED)
    replicator_pause(replicator=replicator, actor=None)
    html = page(browser, replicator.get_absolute_url())
    assert 'data-code="source:unreachable"' in html and "5 tries failed." in html


def test_an_error_of_a_plugin_that_left_can_be_read(
    browser: Client, replicator: Replicator
) -> None:
    """Guards what is stored: a code that no plugin has any more broke the page that showed it."""
    make_failing(replicator, "source:clock-stopped")
    html = page(browser, replicator.get_absolute_url())
    assert 'data-code="source:clock-stopped"' in html and "whose text is not here" in html
    reported = error_by_rest(browser)
    assert reported is not None and "`source:clock-stopped`" in reported["message"]
    assert "Install that connector again" in reported["suggestion"]


def test_every_advice_to_wait_for_the_next_try_is_known() -> None:
    """Guards `Message.waits`: such an advice is another one once the error is given up."""
    waits = re.compile(r"is (tried|started|read|made) again|^Nothing to do[:.]")
    asked = {
        code
        for code, message in messages().items()
        if message.scope is Scope.RUN and message.retry is Retry.AUTO
        if waits.search(message.suggestion)
    }
    assert asked == {code for code, message in messages().items() if message.waits}
