"""What a feed's messages look like. The words and defaults are those of Change Data Capture in
CockroachDB (envelope, format) and YugabyteDB (record)."""

from __future__ import annotations

from dataclasses import dataclass

NONE, KEY_ONLY, DIFF, DEBEZIUM = "none", "key_only", "diff", "debezium"
ENVELOPES = (NONE, KEY_ONLY, DIFF, DEBEZIUM)
CHANGE, AFTER, ALL = "CHANGE", "AFTER", "ALL"
RECORDS = (CHANGE, AFTER, ALL)
JSON, AVRO = "json", "avro"
FORMATS = (JSON, AVRO)
SKIP, MESSAGE = "skip", "message"
TRUNCATES = (SKIP, MESSAGE)
STRING, NUMBER = "string", "number"
DECIMALS = (STRING, NUMBER)


class InvalidOptions(ValueError):
    """Options that contradict each other. `faults`: option -> what is wrong with it."""

    def __init__(self, faults: dict[str, str]) -> None:
        super().__init__("; ".join(f"{name} {fault}" for name, fault in faults.items()))
        self.faults = faults


@dataclass(frozen=True, slots=True)
class FeedOptions:
    """How changes are written as messages; `docs/feeds.md` has an example of each.

    `envelope`: `none` the new row, nothing for a deletion; `key_only` no values; `diff` the old row
    and the new row; `debezium` the message of Debezium. `record`: `AFTER` whole rows; `CHANGE` the
    changed values and the key only; `ALL` the old row and the new row: with the envelope `none` it
    is the same as the envelope `diff`.

    `tombstones`: a deletion of `diff` and `debezium` is followed by a message with the key and
    without a value, so that a compacted topic forgets the row. `truncates`: whether a TRUNCATE
    gives a message. `last_only`: only the last version of a row in each transaction. `updated`: the
    values of `none` and `diff` say when the change was committed. `decimals`: exact decimals in
    JSON are strings or numbers.
    """

    envelope: str = NONE
    record: str = AFTER
    format: str = JSON
    tombstones: bool = True
    truncates: str = SKIP
    last_only: bool = False
    updated: bool = False
    decimals: str = STRING

    def __post_init__(self) -> None:
        choices = {
            "envelope": ENVELOPES,
            "record": RECORDS,
            "format": FORMATS,
            "truncates": TRUNCATES,
            "decimals": DECIMALS,
        }
        faults = {
            name: f"must be one of {', '.join(words)}"
            for name, words in choices.items()
            if getattr(self, name) not in words
        }
        if self.envelope == KEY_ONLY and self.record != AFTER:
            faults["record"] = "must be AFTER: the envelope key_only has no values"
        if self.envelope == KEY_ONLY and self.truncates == MESSAGE:
            faults["truncates"] = "must be skip: the envelope key_only has no values"
        if faults:
            raise InvalidOptions(faults)

    @property
    def shape(self) -> str:
        """The envelope that is written."""
        return DIFF if self.envelope == NONE and self.record == ALL else self.envelope


@dataclass(frozen=True, slots=True)
class Origin:
    """What the Debezium envelope says about the source: its kind, the name of the stream (there
    `topic.prefix`) and the database."""

    connector: str = ""
    name: str = ""
    database: str = ""


@dataclass(frozen=True, slots=True)
class SchemaIds:
    """A registry's numbers of the two schemas; they stand in front of each key and value."""

    key: int
    value: int
