"""What a person reads in the log about a table's maintenance."""

from __future__ import annotations

from runners.engine.apply.maintenance import figures_told


def test_figures_are_told_in_words_without_those_that_are_zero() -> None:
    """Guards the words of `maintenance.figures_told`: names of fields and zeros would make the
    log's line unreadable."""
    facts = {
        "rewritten": {"rewritten_data_files_count": 51, "failed_data_files_count": 0},
        "expired": {"deleted_manifest_lists_count": 3},
        "vacuumed_files": 2,
    }
    told = ": rewritten data files 51, deleted manifest lists 3, vacuumed files 2"
    assert figures_told(facts) == told


def test_a_maintenance_that_found_nothing_says_only_how_long_it_took() -> None:
    """Guards the empty case of `maintenance.figures_told`: the line would end with a colon and
    nothing behind it."""
    assert figures_told({"rewritten": {"rewritten_data_files_count": 0}}) == ""
