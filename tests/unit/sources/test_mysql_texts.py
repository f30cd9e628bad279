"""Texts that the servers make of what they keep: labels in the catalog, and JSON."""

from __future__ import annotations

import base64
import json

import pytest

from replicators.connectors.model.types import Unsupported
from replicators.sources.mysql.jsonb import OPAQUE, json_text
from replicators.sources.mysql.schemas import sent_type
from replicators.sources.mysql.tablemaps import ENUM, SET, MapColumn
from replicators.sources.mysql.types import NativeType, column_type, labels

VARCHAR, LINE, THAI = 15, 76, 18


@pytest.mark.parametrize(
    ("full", "found"),
    [
        ("enum('a','it''s','')", ("a", "it's", "")),
        (r"enum('a\\b','c\\','d\nx','\0','\r')", ("a\\b", "c\\", "d\nx", "\0", "\r")),
        (r"set('\\''','),(')", ("\\'", "),(")),
    ],
)
def test_labels_are_what_was_declared(full: str, found: tuple[str, ...]) -> None:
    """Guards the labels of ENUM and SET with a backslash or a line's end, which the catalog writes
    with a backslash before."""
    assert labels(full) == found


@pytest.mark.parametrize("name", ["enum", "set"])
def test_labels_in_a_character_set_that_is_not_known_are_one_columns_fault(name: str) -> None:
    """Guards the other tables: labels that nobody could read ended the decoding of all of them."""
    native = NativeType(name, f"{name}('a')", charset="tis620")
    assert column_type(native) == (Unsupported("labels in tis620"), "")
    sent = MapColumn({"enum": ENUM, "set": SET}[name], 1, "e", collation=THAI, labels=(b"a",))
    assert sent_type(sent, {THAI: "tis620"}, "null") == (Unsupported("labels in tis620"), "")
    assert sent_type(sent, {THAI: "latin1"}, "null")[1] == name


@pytest.mark.parametrize("size", [0, 1, 57, 58, 114, 115, 120])
def test_bytes_in_a_document_are_broken_into_lines_as_the_server_does(size: int) -> None:
    """Guards long binary values in JSON: the server's text has a line's end after each 76
    characters, so a copy has it, and a change must have it too."""
    data = bytes(n % 251 for n in range(size))
    shown = json.loads(json_text(bytes([OPAQUE, VARCHAR, size]) + data))
    head = f"base64:type{VARCHAR}:"
    assert shown.startswith(head)
    lines = shown.removeprefix(head).split("\n")
    assert base64.b64decode("".join(lines)) == data
    assert all(len(line) == LINE for line in lines[:-1])
    assert 0 < len(lines[-1]) <= LINE or not size
