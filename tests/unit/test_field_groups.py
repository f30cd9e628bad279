"""Fields of a form stand under the headings of their groups."""

from __future__ import annotations

import re

import pytest
from django.template.loader import render_to_string

from replicators.forms import param_fields

ALONE = ["warehouse", "format"]


def test_each_group_has_one_heading_and_its_fields_follow_it() -> None:
    """Guards the lakehouse's form: it has more fields than anybody reads in one go."""
    found = param_fields("target", "lakehouse", {}, {})
    assert [f.id.partition(".")[2] for f in found if not f.group] == ALONE
    groups = list(dict.fromkeys(f.group for f in found))
    assert [f.group for f in found] == sorted((f.group for f in found), key=groups.index)
    page = render_to_string("components/fields.html", {"fields": found})
    shown = re.findall(r'<h3 class="field-group">([^<]+)</h3>|name="target\.(\w+)"', page)
    expected = []
    for group in groups:
        mine = [("", f.id.partition(".")[2]) for f in found if f.group == group]
        expected += [*([(group, "")] if group else []), *mine]
    assert shown == expected
    assert [g for g in groups if g] == [
        "Catalog",
        "Names",
        "Tables",
        "Older versions",
        "Bucket of S3",
        "Bucket of Google Cloud Storage",
        "Container of Azure",
        "HDFS",
    ]


@pytest.mark.parametrize("kind", ["bigquery", "redshift", "postgresql"])
def test_a_form_without_groups_is_as_it_was(kind: str) -> None:
    """Guards other plugins: their fields keep their order, and no heading stands there."""
    found = param_fields("target", kind, {}, {})
    assert "<h3" not in render_to_string("components/fields.html", {"fields": found})
