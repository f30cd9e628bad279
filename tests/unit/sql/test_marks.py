"""The identity of a table within its comment."""

from __future__ import annotations

from replicators.connectors.sql.marks import MARK, mark_of, marked


def test_a_mark_is_found_within_a_persons_comment() -> None:
    mark = "(replicator 123e4567-e89b-12d3-a456-426614174000)"
    assert mark_of(f"All orders. {mark} Ask Ann.") == mark.strip("()")
    assert mark_of("made by the replicator") == ""


def test_a_new_mark_takes_the_place_of_the_one_before() -> None:
    first, comment = marked("All orders.")
    second, again = marked(f"{comment} Ask Ann.")
    assert first != second and again == f"All orders. Ask Ann. ({second})"
    assert len(MARK.findall(again)) == 1
