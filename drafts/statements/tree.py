"""What a statement says, as data. Names of tables are not yet looked up."""

from __future__ import annotations

from dataclasses import dataclass

from drafts.statements.tokens import Token


@dataclass(frozen=True, slots=True)
class Name:
    """A name of one or more parts: `orders`, `shop.orders`."""

    parts: tuple[Token, ...]

    @property
    def at(self) -> int:
        return self.parts[0].at

    def __str__(self) -> str:
        return ".".join(p.value for p in self.parts)


@dataclass(frozen=True, slots=True)
class Watched:
    """What is watched: a table, or every table of a database or schema (`is_database`). A table may
    be narrowed. `low` and `high`: VALUES FROM (low) TO (high), the rows whose key is at least `low`
    and less than `high`. The rest is what pages let people choose."""

    name: Name
    is_database: bool = False
    columns: tuple[Token, ...] = ()
    low: tuple[Token, ...] = ()
    high: tuple[Token, ...] = ()
    partitions: tuple[Token, ...] = ()
    where: Token | None = None
    without: tuple[Token, ...] = ()
    mode: Token | None = None
    unsupported: Token | None = None


@dataclass(frozen=True, slots=True)
class Setting:
    """`key = value` of WITH or SET. A key alone is a switch that is on."""

    key: Token
    value: Token | None

    @property
    def name(self) -> str:
        return self.key.value.lower()

    @property
    def text(self) -> str:
        return "true" if self.value is None else self.value.value

    @property
    def at(self) -> int:
        """Where the value is written."""
        return self.key.at if self.value is None else self.value.at


@dataclass(frozen=True, slots=True)
class Statement:
    """Any statement; `text` is the whole of it."""

    text: str


@dataclass(frozen=True, slots=True)
class Create(Statement):
    """CREATE CHANGEFEED, or CREATE CDC, which has no name and takes the target by its name
    (`into` is a WORD then)."""

    name: Token | None
    watched: tuple[Watched, ...]
    source: Token | None
    into: Token
    settings: tuple[Setting, ...]

    @property
    def is_cdc(self) -> bool:
        return self.name is None


@dataclass(frozen=True, slots=True)
class Named(Statement):
    """PAUSE, RESUME, DROP and SHOW CREATE CHANGEFEED: `act` is the word in lower case."""

    act: str
    name: Token


@dataclass(frozen=True, slots=True)
class ShowAll(Statement):
    """SHOW CHANGEFEEDS."""


@dataclass(frozen=True, slots=True)
class DropCdc(Statement):
    """DROP CDC FOR a table, and INTO which target where it has several."""

    table: Name
    into: Token | None


@dataclass(frozen=True, slots=True)
class Alter(Statement):
    """ALTER CHANGEFEED: another address, or settings."""

    name: Token
    into: Token | None
    settings: tuple[Setting, ...]
