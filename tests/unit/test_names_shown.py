"""Names as pages show them."""

from __future__ import annotations

import pytest

from replicators.templatetags.ui import breakable


@pytest.mark.parametrize(
    ("name", "shown"),
    [
        ("flights", "flights"),
        ("aircraft_maintenance_history", "aircraft_<wbr>maintenance_<wbr>history"),
        ("_a__b_", "_<wbr>a__<wbr>b_"),
        ("<b>_x", "&lt;b&gt;_<wbr>x"),
    ],
)
def test_a_long_name_is_broken_between_its_words(name: str, shown: str) -> None:
    """Guards `breakable`: names were broken in the middle of a word, and may hold what a browser
    takes for markup."""
    assert breakable(name) == shown
