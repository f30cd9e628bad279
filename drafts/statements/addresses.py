"""Reads the addresses and options of a statement by what the plugin says of itself."""

from __future__ import annotations

from difflib import get_close_matches

from drafts.statements.errors import StatementError
from drafts.statements.tokens import Token
from replicators.config import plugin_of
from replicators.connectors.params import MASK
from replicators.connectors.source import SourcePlugin
from replicators.connectors.target import TargetPlugin
from replicators.connectors.uris import Given, UriError, Words, scheme_of
from replicators.selectors import plugins

HIDDEN = f"Write the secret itself here: {MASK} stands for it where a statement is shown."


def words_of(plugin: SourcePlugin | TargetPlugin) -> Words:
    """The plugin's parameters by the words of statements."""
    return Words.of(plugin.params, plugin.uri)


def kind_called(text: str, role: str, word: str, at: int) -> str:
    """The kind of connector that this word of an address or of INTO names."""
    named = {p.name: p.name for p in plugins(role)}
    named |= {n: p.name for p in plugins(role) for n in p.uri.names}
    if word.lower() in named:
        return named[word.lower()]
    near = get_close_matches(word.lower(), named, 1)
    meant = f" Did you mean {near[0]}?" if near else ""
    listed = ", ".join(sorted(set(named)))
    raise StatementError(f"There is no {role} `{word[:40]}`.{meant} Known are: {listed}.", text, at)


def params_given(text: str, role: str, token: Token) -> tuple[str, list[Given]]:
    """The kind of an address in quotes, and the parameters that it gives."""
    try:
        begin = scheme_of(token.value)
    except UriError as err:
        raise StatementError(str(err), text, token.inside(err.at)) from err
    kind = kind_called(text, role, begin, token.inside(0))
    plugin = plugin_of(role, kind)
    try:
        given = words_of(plugin).parse(token.value)
    except UriError as err:
        raise StatementError(str(err), text, token.inside(err.at)) from err
    for one in given:
        require_secret(text, one.value, token.inside(one.at))
    return kind, given


def require_secret(text: str, value: str, at: int) -> None:
    """`StatementError` where a shown statement was sent as it was shown."""
    if value == MASK:
        raise StatementError(HIDDEN, text, at)
