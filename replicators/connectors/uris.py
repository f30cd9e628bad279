"""A connector's parameters as one address, `kafka://host:9092?topic_prefix=shop_`, for statements.
Opens nothing."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import quote, unquote

from replicators.connectors.params import MASK, Param, describe

_SCHEME = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*")
_SAFE = "/:,.-_~@+*"


@dataclass(frozen=True, slots=True)
class UriScheme:
    """How a connector's parameters are written as an address. Each field names a parameter, or
    none; what a connector does not have is left out. So most connectors need no scheme of their
    own: the address begins with the plugin's name, and every parameter may follow as `?name=value`.

    `names`: what an address may begin with besides the plugin's name. `hosts`: takes all of
    `host:port,host:port`, with `hosts_begin` in front of it. `whole`: takes everything up to the
    `?`, such as a folder. `words`: other names of parameters, as other programs have them.
    """

    names: tuple[str, ...] = ()
    hosts: str = ""
    hosts_begin: str = ""
    whole: str = "location"
    user: str = "user"
    password: str = "password"  # noqa: S105 - the name of a parameter
    host: str = "host"
    port: str = "port"
    path: str = "database"
    words: Mapping[str, str] = field(default_factory=dict)


class UriError(ValueError):
    """What is wrong with an address, and after how many of its characters."""

    def __init__(self, text: str, at: int) -> None:
        super().__init__(text)
        self.at = at


@dataclass(frozen=True, slots=True)
class Given:
    """A parameter's value as an address or an option gives it. `at`: where it begins."""

    name: str
    value: str
    at: int


@dataclass(frozen=True, slots=True)
class Words:
    """The parameters of a connector by the words that a statement may use."""

    params: Mapping[str, Param]
    scheme: UriScheme

    @classmethod
    def of(cls, params: type, scheme: UriScheme) -> Words:
        known = {p.name: p for p in describe(params)}
        words = {w.lower(): known[p] for w, p in scheme.words.items() if p in known}
        return cls({**words, **known}, scheme)

    def value(self, param: Param, text: str) -> str:
        """The text as the parameter takes it: one of its choices in any case of letters, or by its
        first word. A server's address loses a scheme that it does not want, such as `http://`."""
        if param.name == self.scheme.hosts and "://" in text and not self.scheme.hosts_begin:
            return text.partition("://")[2]
        plain = [c for c in param.choices if c.casefold() == text.casefold()]
        begins = [c for c in param.choices if c.casefold().startswith(f"{text.casefold()} ")]
        found = plain or (begins if text and len(begins) == 1 else [])
        return found[0] if found else text

    def parse(self, address: str) -> list[Given]:
        """What an address gives. `UriError` where it says what the connector does not have."""
        place, mark, query = address.partition("?")
        rest = place.partition(":")[2]
        found = self._place(rest, len(place) - len(rest))
        at = len(place) + 1
        for pair in query.split("&") if mark else ():
            if pair:
                found.append(self._pair(pair, at, found))
            at += len(pair) + 1
        return found

    def _pair(self, pair: str, at: int, before: list[Given]) -> Given:
        word, mark, value = pair.partition("=")
        param = self.params.get(unquote(word).lower())
        if param is None:
            raise UriError(f"There is no `{word[:60]}` here. {self.listed}", at)
        if not mark:
            raise UriError(f"`{word[:60]}` has no value: write {word[:60]}=…", at + len(pair))
        if any(g.name == param.name for g in before):
            raise UriError(f"`{word[:60]}` is given twice.", at)
        return Given(param.name, self.value(param, unquote(value)), at + len(word) + 1)

    @property
    def listed(self) -> str:
        """A sentence with every name."""
        return f"Known are: {', '.join(sorted(p.name for p in set(self.params.values())))}."

    def _place(self, rest: str, at: int) -> list[Given]:
        if self.scheme.whole in self.params:
            text = rest[2:] if rest.startswith("///") else rest
            text, at = text, at + len(rest) - len(text)
            return [Given(self.scheme.whole, unquote(text), at)] if text else []
        slashes = 2 if rest.startswith("//") else 0
        authority, slash, path = rest[slashes:].partition("/")
        at += slashes
        found = self._authority(authority, at)
        if path.strip("/"):
            found.append(self._part("path", path.strip("/"), at + len(authority) + len(slash)))
        return found

    def _authority(self, text: str, at: int) -> list[Given]:
        login, mark, hosts = text.rpartition("@")
        found = []
        if mark:
            user, colon, password = login.partition(":")
            found += [self._part("user", user, at)] if user else []
            if colon:
                found.append(self._part("password", password, at + len(user) + 1))
        at += len(login) + len(mark)
        if not hosts:
            return found
        if self.scheme.hosts in self.params:
            value = f"{self.scheme.hosts_begin}{unquote(hosts)}"
            return [*found, Given(self.scheme.hosts, value, at)]
        host, port = hosts, ""
        if not hosts.endswith("]"):
            host, _, port = hosts.rpartition(":") if ":" in hosts else (hosts, "", "")
        found.append(self._part("host", host.strip("[]"), at))
        return [*found, self._part("port", port, at + len(host) + 1)] if port else found

    def _part(self, part: str, text: str, at: int) -> Given:
        name = getattr(self.scheme, part)
        if name not in self.params:
            raise UriError(f"This address has no {part}. {self.listed}", at)
        return Given(name, unquote(text), at)


def scheme_of(address: str) -> str:
    """What the address begins with, in lower case; `UriError` where it is no address."""
    begin, mark, _ = address.partition(":")
    if not mark or not _SCHEME.fullmatch(begin):
        raise UriError("Expected an address, such as files:/data/changes or kafka://host:9092.", 0)
    return begin.lower()


def written(plugin_name: str, params: type, scheme: UriScheme, values: Mapping[str, Any]) -> str:
    """The address of these raw params. Secrets are the mask, and defaults are left out."""
    known = {p.name: p for p in describe(params)}
    texts = {
        name: MASK if known[name].secret else _text(value)
        for name, value in values.items()
        if name in known and value not in (None, "") and value != known[name].default
    }
    begin = (scheme.names or (plugin_name,))[0]
    place = _placed(scheme, texts, set(known))
    words = {p: w for w, p in scheme.words.items()}
    query = "&".join(f"{words.get(n, n)}={quote(t, _SAFE)}" for n, t in texts.items())
    return f"{begin}:{place}{'?' if query else ''}{query}"


def _placed(scheme: UriScheme, texts: dict[str, str], known: set[str]) -> str:
    """The part before the `?`. What it says is taken out of `texts`."""
    if scheme.whole in known:
        return quote(texts.pop(scheme.whole, ""), _SAFE)
    hosts = texts.get(scheme.hosts, "")
    if hosts and hosts.startswith(scheme.hosts_begin):
        place = texts.pop(scheme.hosts)[len(scheme.hosts_begin) :]
    else:
        place = texts.pop(scheme.host, "")
        place = f"[{place}]" if ":" in place else place
        place += f":{texts.pop(scheme.port)}" if place and scheme.port in texts else ""
    if not place:
        return ""
    user = quote(texts.pop(scheme.user, ""), "")
    if user and scheme.password in texts:
        user += f":{texts.pop(scheme.password)}"
    path = texts.pop(scheme.path, "")
    return f"//{user}{'@' if user else ''}{place}{'/' if path else ''}{quote(path, '')}"


def _text(value: Any) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)
