"""Rules that people write into text fields: names of namespaces, table properties. Parsing only;
nothing is opened here."""

from __future__ import annotations

from collections.abc import Callable, Mapping

SCHEMA = "{schema}"
KEEP, LOWER, UPPER = "keep", "lower", "upper"
CASES: Mapping[str, Callable[[str], str]] = {KEEP: str, LOWER: str.lower, UPPER: str.upper}
OWN = (
    "replicator.", "format-version", "gc.enabled", "history.expire.", "write.delete.",
    "write.update.", "write.merge.", "write.distribution-mode", "write.metadata.",
    "write.data.", "write.folder-storage.", "write.object-storage.", "write.location-provider.",
    "write.wap.", "write.format.default", "commit.manifest.", "delta.columnmapping.",
    "delta.enabledeletionvectors", "delta.logretentionduration", "delta.minreaderversion",
    "delta.deletedfileretentionduration", "delta.minwriterversion", "delta.appendonly",
    "delta.feature.", "delta.enablerowtracking", "delta.coordinatedcommits",
)  # fmt: skip
"""The beginnings of properties that this program sets itself or relies on, in lower case."""
RESERVED = frozenset(
    {"comment", "external", "is_managed_location", "location", "owner", "provider"}
)
"""Properties that Spark keeps for itself."""


def pairs(text: str) -> dict[str, str]:
    """`name=value; name=value` as a dict. ValueError with a sentence."""
    found: dict[str, str] = {}
    for part in filter(None, (p.strip() for p in text.split(";"))):
        name, equals, value = (x.strip() for x in part.partition("="))
        if not (name and equals and value):
            raise ValueError("must look like name=value; name=value")
        if name in found:
            raise ValueError(f"has {name} twice")
        found[name] = value
    return found


def fault(read: Callable[[str], object], text: str) -> str:
    """What `read` says is wrong with a text; empty where nothing is."""
    try:
        read(text)
    except ValueError as err:
        return str(err)
    return ""


def pairs_fault(text: str) -> str:
    """What is wrong with a text of pairs."""
    return fault(pairs, text)


def name_fault(text: str) -> str:
    """What is wrong with a rule for a name."""
    rest = text.replace(SCHEMA, "")
    return f"may have braces only in {SCHEMA}" if "{" in rest or "}" in rest else ""


def properties_fault(text: str) -> str:
    """What is wrong with a text of table properties."""

    def read(text: str) -> None:
        for name in pairs(text):
            if name.lower().startswith(OWN) or name.lower() in RESERVED:
                raise ValueError(f"can't set {name}, which this program sets or relies on")

    return fault(read, text)
