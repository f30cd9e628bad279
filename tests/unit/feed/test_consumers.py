"""Whoever applies the messages, one after the other, has the table."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from replicators.connectors.feed.messages import encoder
from replicators.connectors.feed.options import FeedOptions
from replicators.connectors.model.changes import Op
from tests.feeds import Change, batch
from tests.unit.feed.test_messages import NAMES, table, valid_options

Key = tuple[Any, ...]
Row = dict[str, Any]
KEYS = st.tuples(st.integers(1, 3), st.sampled_from(["x", "y"]))
VALUES = st.fixed_dictionaries({"name": NAMES, "notes": NAMES, "size": st.sampled_from([None, 1])})


@st.composite
def lives(draw: st.DrawFn, *, full: bool) -> tuple[list[Change], dict[Key, Row]]:
    """What happened to a table, as its source reports it, and the table then. A value that an
    update did not change may not be sent."""
    rows: dict[Key, Row] = {}
    made: list[Change] = []
    transaction = 1
    for _ in range(draw(st.integers(1, 12))):
        transaction += draw(st.integers(0, 1))
        key, to, values = draw(KEYS), draw(KEYS), draw(VALUES)
        row = {"id": key[0], "part": key[1], **values}
        what = draw(st.sampled_from(["write", "write", "write", "move", "delete", "truncate"]))
        old = rows.get(key)
        names = {"id": key[0], "part": key[1]}
        if what == "truncate":
            rows.clear()
            made.append(Change(Op.TRUNCATE, {}, None, (), transaction))
        elif old is None:
            rows[key] = row
            made.append(Change(Op.INSERT, row, None, (), transaction))
        elif what == "delete":
            del rows[key]
            before = old if full else draw(st.sampled_from([None, names]))
            made.append(Change(Op.DELETE, names, before, (), transaction))
        elif what == "move" and to not in rows:
            rows[to] = {**row, "id": to[0], "part": to[1]}
            del rows[key]
            made.append(Change(Op.UPDATE, rows[to], old if full else names, (), transaction))
        else:
            unsent = ("notes",) if draw(st.booleans()) else ()
            rows[key] = {**row, **{n: old[n] for n in unsent}}
            sent = {**rows[key], **dict.fromkeys(unsent)}
            before = old if full else None
            made.append(Change(Op.UPDATE, sent, before, unsent, transaction))
    return made, rows


def applied(options: FeedOptions, messages: list[dict[str, Any]]) -> dict[Key, Row]:
    """The table of a consumer that knows its envelope and nothing else."""
    rows: dict[Key, Row] = {}
    for message in messages:
        if message["key"] is None:
            rows.clear()  # a TRUNCATE
            continue
        key = tuple(json.loads(message["key"]))
        value = message["value"] and json.loads(message["value"])
        if options.envelope in {"diff", "debezium"} or options.record == "ALL":
            value = value and value["after"]
        if value is None:
            rows.pop(key, None)
            continue
        value.pop("_unsent", None)
        rows[key] = {**rows.get(key, {}), **value}
    return rows


@pytest.mark.parametrize("full", [False, True], ids=["old-keys", "old-rows"])
@pytest.mark.parametrize(
    "plain",
    [o for o in valid_options() if o.envelope != "key_only"],
    ids=lambda o: f"{o.envelope}-{o.record}",
)
@settings(max_examples=20, deadline=None)
@given(data=st.data())
def test_who_applies_the_messages_has_the_table(
    full: bool, plain: FeedOptions, data: st.DataObject
) -> None:
    """Guards that no change is lost on its way, whatever is left out of a message."""
    options = FeedOptions(
        plain.envelope, plain.record, truncates="message",
        tombstones=data.draw(st.booleans()), last_only=data.draw(st.booleans()),
    )  # fmt: skip
    changes, rows = data.draw(lives(full=full))
    schema = table(full=full)
    made = encoder(schema, options).encode(batch(schema, changes)).to_pylist()
    assert applied(options, made) == rows
    if options.last_only:
        shown = [m for m in made if m["key"] is not None and m["_part"] % 2 == 0]
        places = [(m["_transaction"], m["key"]) for m in shown]
        assert len(places) == len(set(places))
