"""Reads what people write about several tables in one field: key columns, and types of columns."""

from __future__ import annotations

import re
from collections.abc import Mapping

from replicators.connectors.model.types import LogicalType
from replicators.sources.compared.types import type_of_text

_ENTRY = re.compile(r"\s*(?:(?P<table>[^:;]+):)?(?P<rest>[^:;]*)", re.DOTALL)


def _entries(text: str) -> dict[str, str]:
    """What stands behind each table's name; under "" what is for every table. ValueError."""
    found: dict[str, str] = {}
    for part in filter(str.strip, text.split(";")):
        entry = _ENTRY.fullmatch(part)
        if entry is None:
            raise ValueError("must look like `customers: id; lines: order, line`")
        table = (entry["table"] or "").strip()
        if table in found:
            what = f"the table {table}" if table else "what is for every table"
            raise ValueError(f"names {what} twice")
        found[table] = entry["rest"].strip()
    return found


def _names(text: str) -> tuple[str, ...]:
    names = tuple(n.strip() for n in text.split(","))
    if not all(names):
        raise ValueError("has a column without a name: columns stand with one comma between them")
    if len(set(names)) < len(names):
        raise ValueError("names a column twice")
    return names


def keys(text: str) -> Mapping[str, tuple[str, ...]]:
    """The key columns by table; under "" those of every table that is not named. ValueError."""
    return {table: _names(rest) for table, rest in _entries(text).items()}


def keys_of(text: str, table: str) -> tuple[str, ...]:
    """The key columns of one table; empty where none are named."""
    found = keys(text)
    return found.get(table, found.get("", ()))


def _types(text: str) -> dict[str, LogicalType]:
    found: dict[str, LogicalType] = {}
    for part in re.split(r",(?![^()]*\))", text):
        name, _, kind = part.strip().rpartition(" ")
        if not name.strip():
            raise ValueError("needs a name and a type for each column: `id bigint, since date`")
        found[name.strip()] = type_of_text(kind)
    return found


def columns(text: str) -> Mapping[str, Mapping[str, LogicalType]]:
    """The types of columns by table. ValueError."""
    found = _entries(text)
    if "" in found:
        raise ValueError("must begin with the table: `customers: id bigint, since date`")
    return {table: _types(rest) for table, rest in found.items()}


def keys_fault(text: str) -> str:
    """What is wrong with the text, as a sentence."""
    try:
        keys(text)
    except ValueError as err:
        return str(err)
    return ""


def columns_fault(text: str) -> str:
    """What is wrong with the text, as a sentence."""
    try:
        columns(text)
    except ValueError as err:
        return str(err)
    return ""
