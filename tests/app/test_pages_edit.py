"""The page on which a deployed replicator's name, connections and options are changed, without
JavaScript and by HTMX."""

from __future__ import annotations

import re
from typing import Any

import pytest
from django.test import Client
from django.utils import timezone

from replicators.connectors.params import MASK
from replicators.models import Replicator
from replicators.services import params_of
from runners.models import Event, Progress
from tests.app.factories import SECRET, make_replicator
from tests.app.pages import htmx, make_live, page

pytestmark = pytest.mark.django_db


def url(replicator: Replicator) -> str:
    return f"/replicators/{replicator.pk}/edit/"


def form(browser: Client, replicator: Replicator, **typed: Any) -> dict[str, str]:
    """What a browser sends of the page as it is, with other values typed into some fields
    (`source.host` as `source__host`)."""
    html = page(browser, url(replicator))
    found = {}
    for tag in re.findall(r"<input[^>]*>", html):
        name, value = re.search(r' name="([^"]*)"', tag), re.search(r' value="([^"]*)"', tag)
        is_box = "radio" in tag or "checkbox" in tag
        if name and (not is_box or " checked" in tag):
            found[name[1]] = value[1] if value else ""
    for name, options in re.findall(r'<select[^>]* name="([^"]*)"[^>]*>(.*?)</select>', html, re.S):
        chosen = re.search(r'value="([^"]*)" selected', options)
        found[name] = chosen[1] if chosen else ""
    found["description"] = ""
    found.pop("csrfmiddlewaretoken", None)
    return found | {name.replace("__", "."): value for name, value in typed.items()}


def test_the_page_is_found_shows_no_secret_and_saves(
    browser: Client, replicator: Replicator
) -> None:
    """Guards the whole way: link, form with masked secrets, change, toast, event."""
    configuration = f"/replicators/{replicator.pk}/configuration/"
    assert url(replicator) in page(browser, configuration)
    html = page(browser, url(replicator))
    assert SECRET not in html and f'value="{MASK}"' in html
    assert 'name="target.namespace"' not in html and "where the tables lie" in html
    typed = {
        "source__host": "db2.example",
        "source__password": "n3w-one",
        "options__keep_hours": "12",
        "act": "save",
    }
    done = browser.post(url(replicator), form(browser, replicator, **typed), follow=True)
    assert done.redirect_chain == [(configuration, 302)]
    html = done.content.decode()
    assert "shop to lakehouse is saved." in html and "db2.example" in html and "12 hours" in html
    replicator.refresh_from_db()
    assert params_of(replicator, "source")["password"] == "n3w-one"
    assert replicator.options["keep_hours"] == 12.0
    assert Event.objects.get(kind="replicator_changed").actor == "editor"
    reported = page(browser, f"/replicators/{replicator.pk}/activity/")
    assert (
        "<code>source.host</code>, <code>source.password</code>, <code>options.keep_hours</code>"
        in reported
    )


def test_a_form_that_is_sent_as_it_came_changes_nothing(
    browser: Client, replicator: Replicator
) -> None:
    before = Replicator.objects.filter(pk=replicator.pk).values("options", "source_params").get()
    done = browser.post(url(replicator), form(browser, replicator), follow=True)
    assert "Nothing was changed." in done.content.decode()
    assert not Event.objects.filter(kind="replicator_changed").exists()
    after = Replicator.objects.filter(pk=replicator.pk).values("options", "source_params").get()
    assert after == before


def test_faulty_fields_are_marked_and_what_was_typed_stays(
    browser: Client, replicator: Replicator
) -> None:
    typed = {"source__port": "0", "source__host": "", "name": "", "options__keep_hours": "-1"}
    sent = form(browser, replicator, **typed)
    whole = browser.post(url(replicator), sent)
    part = browser.post(url(replicator), sent, headers=htmx())
    for response in (whole, part):
        html = response.content.decode()
        assert response.status_code == 422
        assert html.count('class="field-error"') == 4
        assert "Give it a name." in html and "Host is required." in html
        assert 'value="-1"' in html
    assert "<html" in whole.content.decode() and "<html" not in part.content.decode()
    replicator.refresh_from_db()
    assert replicator.source_params["port"] == 1


def test_a_name_in_use_is_reported_at_the_field(browser: Client, replicator: Replicator) -> None:
    make_replicator("another")
    response = browser.post(url(replicator), form(browser, replicator, name="another"))
    assert response.status_code == 422
    assert "There is already a replicator called" in response.content.decode()


def test_an_emptied_option_goes_back_to_its_default(
    browser: Client, replicator: Replicator
) -> None:
    Replicator.objects.filter(pk=replicator.pk).update(options={"keep_hours": 5.0})
    sent = form(browser, replicator, options__keep_hours="")
    assert browser.post(url(replicator), sent).status_code == 302
    replicator.refresh_from_db()
    assert replicator.options["keep_hours"] == 24.0


def test_a_connection_is_tested_with_what_is_typed_and_stored_nowhere(
    browser: Client, replicator: Replicator
) -> None:
    sent = form(browser, replicator, source__fault="none", act="test:source")
    assert "test-ok" in browser.post(url(replicator), sent).content.decode()
    sent |= {"source.fault": "login", "source.password": "typed"}
    refused = browser.post(url(replicator), sent, headers=htmx()).content.decode()
    assert 'data-code="source:login-refused"' in refused and 'value="typed"' in refused
    works = browser.post(url(replicator), {**sent, "act": "test:target"}).content.decode()
    assert "test-ok" in works and "source:login-refused" not in works
    faulty = browser.post(url(replicator), {**sent, "source.port": "x"})
    assert faulty.status_code == 422
    replicator.refresh_from_db()
    assert params_of(replicator, "source")["password"] == SECRET


def test_two_who_edit_at_once_do_not_overwrite_each_other_unasked(
    browser: Client, replicator: Replicator
) -> None:
    """Guards the version in the form; fails where it is not compared."""
    mine = form(browser, replicator, source__host="mine.example", source__password=SECRET)
    theirs = form(browser, replicator, source__port="2", source__password=SECRET)
    assert browser.post(url(replicator), theirs).status_code == 302
    stale = browser.post(url(replicator), mine)
    html = stale.content.decode()
    assert stale.status_code == 409
    assert 'data-testid="conflict"' in html and "mine.example" in html
    version = re.search(r'name="version" value="(\w+)"', html)
    assert version is not None
    again = browser.post(url(replicator), {**mine, "version": version[1]})
    assert again.status_code == 302


def test_a_run_that_runs_can_be_started_again(browser: Client, replicator: Replicator) -> None:
    assert "Save and restart" not in page(browser, url(replicator))
    run = make_live(replicator)
    assert "Save and restart" in page(browser, url(replicator))
    sent = form(browser, replicator, source__host="db2.example", source__password=SECRET)
    saved = browser.post(url(replicator), sent, follow=True).content.decode()
    assert "It goes on as before until it starts next." in saved
    sent = form(browser, replicator, act="restart")
    done = browser.post(url(replicator), sent, follow=True).content.decode()
    assert "is saved, and starts again." in done
    run.refresh_from_db()
    assert run.stop_origin == "change"
    reported = page(browser, f"/replicators/{replicator.pk}/activity/")
    assert "It starts again, with what was changed." in reported


def test_another_server_is_refused_on_the_page_and_can_be_insisted_on(
    browser: Client, replicator: Replicator
) -> None:
    Progress.objects.update(position={"value": 7, "detail": {}})
    sent = form(browser, replicator, source__host="other.example", source__password=SECRET)
    refused = browser.post(url(replicator), sent)
    html = refused.content.decode()
    assert refused.status_code == 409
    assert 'data-code="config:another-server"' in html and 'name="accept_lost_position"' in html
    taken = browser.post(url(replicator), {**sent, "accept_lost_position": "true"})
    assert taken.status_code == 302


def test_a_mode_that_does_not_fit_is_reported_with_its_problem(
    browser: Client, editor: Any
) -> None:
    made = make_replicator("keyless", tables=[{"schema": "shop", "name": "page_views"}])
    refused = browser.post(url(made), form(browser, made, options__mode="history"))
    assert refused.status_code == 409
    assert 'data-code="target:mode-needs-key"' in refused.content.decode()


def test_what_a_fault_advises_is_one_click_away(
    browser: Client, client: Client, replicator: Replicator, viewer: Any
) -> None:
    """Guards the link beside errors that other settings may mend, for who may edit."""
    Replicator.objects.filter(pk=replicator.pk).update(desired_state="running")
    Progress.objects.update(error_code="source:login-refused", is_given_up=True)
    assert url(replicator) in page(browser, f"/replicators/{replicator.pk}/")
    Progress.objects.update(error_code="source:wal-level", error_facts={"value": "replica"})
    assert url(replicator) not in page(browser, f"/replicators/{replicator.pk}/")
    client.force_login(viewer)
    Progress.objects.update(error_code="source:login-refused", error_facts={})
    for tab in ("", "configuration/"):
        assert url(replicator) not in page(client, f"/replicators/{replicator.pk}/{tab}")


def test_after_a_lost_key_passwords_are_entered_again(
    browser: Client, replicator: Replicator, settings: Any
) -> None:
    """Guards that the pages open without the key; fails where they read the secrets first."""
    settings.REPLICATOR_SECRET_KEY = "another"
    assert MASK in page(browser, f"/replicators/{replicator.pk}/configuration/")
    html = page(browser, url(replicator))
    assert 'data-code="config:secrets-unreadable"' in html and MASK not in html
    empty = browser.post(url(replicator), form(browser, replicator, name="renamed"))
    assert empty.status_code == 422
    assert "enter it again" in empty.content.decode()
    sent = form(browser, replicator, source__password="again")
    assert browser.post(url(replicator), sent).status_code == 302
    replicator.refresh_from_db()
    assert params_of(replicator, "source")["password"] == "again"


def test_what_can_not_be_edited_says_so(browser: Client, replicator: Replicator) -> None:
    Replicator.objects.filter(pk=replicator.pk).update(target_kind="removed_one")
    gone = browser.get(url(replicator))
    assert gone.status_code == 409
    assert 'data-code="config:unknown-kind"' in gone.content.decode()
    Replicator.objects.filter(pk=replicator.pk).update(deleting_since=timezone.now())
    deleting = browser.get(url(replicator), follow=True)
    assert "This replicator is being deleted." in deleting.content.decode()
