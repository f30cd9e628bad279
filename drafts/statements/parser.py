"""Reads a statement. Each rule is a method; an error says what was expected at the first token that
does not fit."""

from __future__ import annotations

from difflib import get_close_matches

from drafts.statements.errors import StatementError
from drafts.statements.tokens import Kind, Token, tokens
from drafts.statements.tree import (
    Alter,
    Create,
    DropCdc,
    Name,
    Named,
    Setting,
    ShowAll,
    Statement,
    Watched,
)

BEGINNINGS = ("CREATE", "PAUSE", "RESUME", "DROP", "SHOW", "ALTER")
_FEED, _CDC = "CHANGEFEED", "CDC"
_NARROWED = ("VALUES", "PARTITION", "WHERE", "WITHOUT", "MODE", "UNSUPPORTED")
_AFTER_TABLES = ("INTO", "FROM", ",", *_NARROWED)
RESERVED = frozenset({"FOR", "INTO", "WITH", "FROM", "TO", "SET", "TABLE", "DATABASE", *_NARROWED})
"""Words that are names only in double quotes."""
_SAID = {",": "a comma", "(": "`(`", ")": "`)`", ".": "a dot", "=": "`=`"}


def parse(text: str) -> Statement:
    """The statement of a text; `StatementError` where it is none. One ; may end it."""
    return _Parser(text).statement()


class _Parser:
    def __init__(self, text: str) -> None:
        self._text = text
        self._tokens = tokens(text)
        self._next = 0

    @property
    def _token(self) -> Token:
        return self._tokens[self._next]

    def _step(self) -> Token:
        token = self._token
        self._next += token.kind is not Kind.END
        return token

    def _is(self, *words: str) -> bool:
        token = self._token
        is_plain = token.kind in (Kind.WORD, Kind.SIGN)
        return is_plain and token.value.upper() in words

    def _take(self, word: str) -> bool:
        """Whether the next token is this word or sign, which is then behind."""
        found = self._is(word)
        self._next += found
        return found

    def _expected(self, *what: str) -> StatementError:
        token, said = self._token, [_SAID.get(w, w) for w in what]
        listed = said[0] if len(said) == 1 else f"{', '.join(said[:-1])} or {said[-1]}"
        is_word = token.kind is Kind.WORD and token.value.upper() not in RESERVED
        near = get_close_matches(token.value.upper(), what, 1) if is_word else []
        meant = f" Did you mean {near[0]}?" if near else ""
        return StatementError(
            f"Expected {listed}, but here is {token.shown}.{meant}", self._text, token.at
        )

    def _require(self, *words: str) -> str:
        """The next token, which must be one of these words or signs."""
        for word in words:
            if self._take(word):
                return word
        raise self._expected(*words)

    def _word(self, what: str) -> Token:
        """The next token as a name."""
        token = self._token
        if token.kind is Kind.WORD and token.value.upper() in RESERVED:
            text = f"Expected {what}, but here is {token.shown}. A name that is a word of the "
            raise StatementError(f"{text}language stands in double quotes.", self._text, token.at)
        if token.kind not in (Kind.WORD, Kind.NAME):
            raise self._expected(what)
        return self._step()

    def _feed_name(self) -> Token:
        if self._token.kind is Kind.TEXT and self._token.value:
            return self._step()
        return self._word("the changefeed's name")

    def statement(self) -> Statement:
        if not self._text.strip():
            listed = ", ".join(BEGINNINGS[:-1])
            text = f"The statement is empty. It begins with {listed} or {BEGINNINGS[-1]}."
            raise StatementError(text, self._text, 0)
        act = self._require(*BEGINNINGS)
        found = self._rule(act)
        self._take(";")
        if self._token.kind is not Kind.END:
            raise self._unread()
        return found

    def _unread(self) -> StatementError:
        if self._is(*BEGINNINGS):
            return StatementError(
                "Expected the end: send one statement at a time.", self._text, self._token.at
            )
        return self._expected("the end")

    def _rule(self, act: str) -> Statement:
        if act == "CREATE":
            return self._create_cdc() if self._require(_FEED, _CDC) == _CDC else self._create()
        if act == "DROP" and self._is(_CDC):
            return self._drop_cdc()
        if act == "SHOW":
            return self._show()
        if act == "ALTER":
            return self._alter()
        self._require(*((_FEED, _CDC) if act == "DROP" else (_FEED,)))
        return Named(self._text, act.lower(), self._feed_name())

    def _show(self) -> Statement:
        if self._require("CREATE", "CHANGEFEEDS") == "CHANGEFEEDS":
            return ShowAll(self._text)
        self._require(_FEED)
        return Named(self._text, "show", self._feed_name())

    def _alter(self) -> Alter:
        self._require(_FEED)
        name = self._feed_name()
        if self._require("INTO", "SET") == "INTO":
            return Alter(self._text, name, self._address(), ())
        return Alter(self._text, name, None, self._settings())

    def _create(self) -> Create:
        name = self._feed_name()
        self._require("FOR")
        watched = self._watched_list()
        source = self._source()
        if not self._take("INTO"):
            raise self._expected(*(_AFTER_TABLES if source is None else ("INTO",)))
        into = self._address()
        return Create(self._text, name, watched, source, into, self._with())

    def _create_cdc(self) -> Create:
        self._require("FOR")
        watched = (Watched(self._dotted("a table")),)
        source = self._source()
        if not self._take("INTO"):
            raise self._expected(*((".", "FROM", "INTO") if source is None else ("INTO",)))
        into = self._word("the target, such as KAFKA or ELASTICSEARCH")
        return Create(self._text, None, watched, source, into, self._with())

    def _drop_cdc(self) -> DropCdc:
        self._require(_CDC)
        self._require("FOR")
        table = self._dotted("a table")
        return DropCdc(self._text, table, self._word("the target") if self._take("INTO") else None)

    def _source(self) -> Token | None:
        if not self._take("FROM"):
            return None
        self._require("SOURCE")
        if self._token.kind is Kind.TEXT:
            return self._step()
        return self._word("the name of a replicator, or the source's address in quotes")

    def _address(self) -> Token:
        if self._token.kind is not Kind.TEXT:
            raise self._expected("the target's address in quotes, such as 'kafka://host:9092'")
        return self._step()

    def _with(self) -> tuple[Setting, ...]:
        if self._take("WITH"):
            return self._settings()
        if self._token.kind is not Kind.END and not self._is(";"):
            raise self._unread() if self._is(*BEGINNINGS) else self._expected("WITH", "the end")
        return ()

    def _settings(self) -> tuple[Setting, ...]:
        found: list[Setting] = []
        while True:
            key = self._word("an option's name")
            if twice := [s for s in found if s.name == key.value.lower()]:
                text = f"`{twice[0].name}` is given twice."
                raise StatementError(text, self._text, key.at)
            has_value = self._take("=")
            found.append(Setting(key, self._value() if has_value else None))
            if self._take(","):
                continue
            if self._token.kind is not Kind.END and not self._is(";"):
                raise self._expected(*(() if has_value else ("=",)), ",", "the end")
            return tuple(found)

    def _value(self) -> Token:
        if self._token.kind in (Kind.TEXT, Kind.NUMBER, Kind.WORD, Kind.NAME):
            return self._step()
        raise self._expected("a value: a text in quotes, a number or a word")

    def _watched_list(self) -> tuple[Watched, ...]:
        found: list[Watched] = []
        word = self._require("TABLE", "DATABASE")
        while True:
            found.append(
                Watched(self._dotted("a database's name"), is_database=True)
                if word == "DATABASE"
                else self._table()
            )
            if not self._take(","):
                return tuple(found)
            if self._is("TABLE", "DATABASE"):
                word = self._step().value.upper()

    def _dotted(self, what: str) -> Name:
        parts = [self._word(what)]
        while self._take("."):
            parts.append(self._word("a name after the dot"))
        if len(parts) > 3:
            text = "A table's name has at most three parts: database.schema.table."
            raise StatementError(text, self._text, parts[3].at)
        return Name(tuple(parts))

    def _table(self) -> Watched:
        name = self._dotted("a table's name")
        said: dict[str, object] = {}
        if self._is("("):
            said["columns"] = self._bracketed_names("a column's name")
        while self._is(*_NARROWED):
            token = self._step()
            word = token.value.upper()
            if _FIRST[word] in said:
                text = f"{word} is given twice for this table."
                raise StatementError(text, self._text, token.at)
            said |= self._narrowed(word)
        return Watched(name, **said)  # type: ignore[arg-type]

    def _narrowed(self, word: str) -> dict[str, object]:
        if word == "VALUES":
            self._require("FROM")
            low = self._bracketed_values()
            self._require("TO")
            return {"low": low, "high": self._bracketed_values()}
        if word == "PARTITION":
            if self._is("("):
                return {"partitions": self._bracketed_names("a partition's name")}
            return {"partitions": (self._word("a partition's name"),)}
        if word == "WHERE":
            if self._token.kind is not Kind.TEXT:
                raise self._expected("a row filter in quotes, such as 'status = ''paid'''")
            return {"where": self._step()}
        if word == "WITHOUT":
            return {"without": self._bracketed_names("inserts, updates or deletes")}
        return {_FIRST[word]: self._word(f"a word after {word}")}

    def _bracketed_names(self, what: str) -> tuple[Token, ...]:
        self._require("(")
        found = [self._word(what)]
        while self._require(",", ")") == ",":
            found.append(self._word(what))
        return tuple(found)

    def _bracketed_values(self) -> tuple[Token, ...]:
        self._require("(")
        found = [self._key_value()]
        while self._require(",", ")") == ",":
            found.append(self._key_value())
        return tuple(found)

    def _key_value(self) -> Token:
        if self._token.kind not in (Kind.TEXT, Kind.NUMBER):
            raise self._expected("a value of the key: a number or a text in quotes")
        return self._step()


_FIRST = {
    "VALUES": "low",
    "PARTITION": "partitions",
    "WHERE": "where",
    "WITHOUT": "without",
    "MODE": "mode",
    "UNSUPPORTED": "unsupported",
}
"""The field of `Watched` that each word fills."""
