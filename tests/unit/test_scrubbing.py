"""Secrets are taken out of a log's texts, whatever the text; and no text makes that slow."""

from __future__ import annotations

import time

import pytest

from runners.logs.scrubbing import Scrubber

SECRET = "correct horse/battery"
LONG = 10_000_000


def scrub(text: str, *secrets: str, characters: int = 8_000) -> str:
    return Scrubber(secrets, characters=characters)(text)


@pytest.mark.parametrize(
    ("text", "kept"),
    [
        ("password='a b' next", "password=******** next"),
        ("PWD: x, y", "PWD: ********, y"),
        ("PGPASSWORD=x y", "PGPASSWORD=******** y"),
        ("catalog_password='x'", "catalog_password=********"),
        ("fs.s3a.secret.key=abc def", "fs.s3a.secret.key=******** def"),
        ("aws_secret_access_key: abc", "aws_secret_access_key: ********"),
        (
            "{'password': \"a b\", 'token': 'c', \"u\": \"me\"}",
            "{'password': ********, 'token': ********, \"u\": \"me\"}",
        ),
        (r"{\"password\": x}", r"{\"password\": ********"),
        ("IDENTIFIED BY 'a b' ok", "IDENTIFIED BY ******** ok"),
        ("redis://:pw@host", "redis://:********@host"),
        ("a://u:p@ss/w@h,b://u:q@h", "a://u:********@h,b://u:********@h"),
        ("http://host:8080/path", "http://host:8080/path"),
        ("at TokenCache.java:123", "at TokenCache.java:123"),
        ("no secrets here", "no secrets here"),
    ],
)
def test_what_looks_like_a_password_is_hidden(text: str, kept: str) -> None:
    assert scrub(text) == kept


@pytest.mark.parametrize(
    ("secret", "text", "kept"),
    [
        (SECRET, f"said {SECRET}!", "said ********!"),
        (SECRET, "correct%20horse%2Fbattery", "********"),
        (SECRET, "correct+horse%2Fbattery", "********"),
        ('quo"ted-one', r"x quo\"ted-one", "x ********"),
        ("a", "a table of a schema", "a table of a schema"),
        ("a", "password=a of a", "password=******** of a"),
        ("shop", "shop.orders of shopping", "********.orders of shopping"),
        ("", "nothing", "nothing"),
    ],
)
def test_a_short_secret_is_hidden_where_it_is_a_word_and_no_other_word_is_touched(
    secret: str, text: str, kept: str
) -> None:
    """Guards the two lengths; a password of one letter would take that letter out of every line."""
    assert scrub(text, secret) == kept


@pytest.mark.parametrize("shown", range(len(SECRET) + 1))
@pytest.mark.parametrize("before", ["", f"{SECRET} " * 3])
def test_a_secret_that_the_text_is_cut_in_is_not_reported_in_part(shown: int, before: str) -> None:
    """Guards the margin and `_without_cut_one`; those before it make the text shorter, which draws
    its beginning in."""
    limit = 100
    filled = (before + "x" * limit)[: limit + len(SECRET) - shown]
    for rest in ("", "y" * 100):
        reported = scrub(f"{filled}{SECRET}{rest}", SECRET, characters=limit)
        assert len(reported) <= limit
        assert "correct" not in reported and "cor" not in reported


def test_an_address_that_the_text_is_cut_in_tells_no_password() -> None:
    assert "hunt" not in scrub("x" * 40 + " a://me:hunter2@host", characters=52)


HOSTILE = {
    "letters": "a",
    "addresses": "a://b:",
    "names": "password",
    "quotes": "password='\"",
    "open": "pwd=\" token='",
    "blanks": "secret ",
    "signs": "token=:",
    "marks": "@:/",
    "scheme": "://",
}


def _seconds(piece: str, count: int) -> float:
    text, scrubber = piece * (count // len(piece)), Scrubber((SECRET, "four"), characters=LONG)
    best = float("inf")
    for _ in range(5):
        began = time.process_time()
        scrubber(text)
        best = min(best, time.process_time() - began)
    return best


@pytest.mark.parametrize("name", HOSTILE)
def test_eight_times_the_text_takes_about_eight_times_the_time(name: str) -> None:
    """Guards the patterns: what backtracks takes 64 times as long, and a line of 80,000 letters
    once held a run up for a minute."""
    small, large = (_seconds(HOSTILE[name], n) for n in (40_000, 320_000))
    assert large < 20 * small + 0.002
