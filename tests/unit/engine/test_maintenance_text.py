"""What a person reads in the log about a table's maintenance."""

from __future__ import annotations

from runners.engine.apply.maintenance import maintenance_text


def test_a_maintenance_is_reported_in_words_without_zeros() -> None:
    """Guards the words of `maintenance.maintenance_text`: names of fields and zeros would make the
    log's line unreadable."""
    facts = {
        "rewritten": {"rewritten_data_files_count": 51, "failed_data_files_count": 0},
        "expired": {"deleted_manifest_lists_count": 3},
        "vacuumed_files": 2,
    }
    reported = ": rewritten data files 51, deleted manifest lists 3, vacuumed files 2"
    assert maintenance_text(facts) == reported


def test_a_maintenance_that_found_nothing_says_only_how_long_it_took() -> None:
    """Guards the empty case of `maintenance.maintenance_text`: the line would end with a colon and
    nothing behind it."""
    assert maintenance_text({"rewritten": {"rewritten_data_files_count": 0}}) == ""
