"""Texts in the servers' character sets: what they show is the oracle, see the integration tests of
these sets."""

from __future__ import annotations

import codecs

import pyarrow as pa
import pytest

from replicators.connectors.model.schema import Column
from replicators.connectors.model.types import String
from replicators.sources.mysql.charsets import CHARACTERS, CODECS, UTF8, decoder_of, is_known
from replicators.sources.mysql.forms import NOT_TEXT, NotText, finish


@pytest.mark.parametrize(
    ("charset", "raw", "text"),
    [
        ("sjis", b"\x81\x5f", "\\"), ("sjis", b"a\x5c\x7e", "a\\~"),
        ("sjis", b"\x83\x5c\xb1", "ソｱ"),
        ("cp932", b"\x81\x5f", "＼"), ("cp932", b"\x87\x40", "①"),
        ("sjis", b"\x87\x40\x88\x9f", "?亜"),
        ("ujis", b"\xa1\xc0\xb0\xa1", "\\亜"), ("ujis", b"\xf5\xa1\xfe\xfe", "\ue000\ue3ab"),
        ("ujis", b"\x8f\xf5\xa1\x8f\xfe\xfe", "\ue3ac\ue757"),
        ("ujis", b"\x8f\xb0\xa1\x8e\xb1", "丂ｱ"),
        ("big5", b"\xa2\xcc\xa4\x51", "\ufffd十"), ("big5", b"\xf9\xd6\xf9\xdc", "碁嫺"),
        ("big5", b"\xf9\xdd", "?"),
        ("gb18030", b"\xa8\xbc\x81\x35\xf4\x37", "\u1e3f\ue7c7"),
        ("gb18030", b"\x94\x39\xda\x33", "💩"),
        ("gb18030", b"\xfe\x39\xfe\x39a", "?a"), ("gb2312", b"\xa2\xa1\xb0\xa1", "?啊"),
        ("gbk", b"\xa1\x40\x81\x40", "?丂"),
        ("euckr", b"\x81\x41\xc7\x41", "갂?"), ("ascii", b"\xc3\xa9", "??"),
        ("latin1", b"\x81\x80", "\x81€"),
        ("utf16", b"\xd8\x3d\xdc\xa9", "💩"), ("utf16le", b"\x3d\xd8\xa9\xdc", "💩"),
        ("utf32", b"\0\1\xf4\xa9", "💩"),
    ],
)  # fmt: skip
def test_a_text_is_what_the_servers_show(charset: str, raw: bytes, text: str) -> None:
    """Guards codes that a codec of Python reads as other characters, or not at all; fails where
    `LONG_DIFFERENCES` is emptied, and where texts are no longer searched for such codes."""
    column = Column("v", String(), "text", wire=f"text:{charset}")
    assert finish(pa.array([raw, None, b""], pa.binary()), column).to_pylist() == [text, None, ""]


@pytest.mark.parametrize(
    ("charset", "raw"),
    [
        ("sjis", b"a\x81"), ("ujis", b"\x8f\xa1"), ("big5", b"\xa1\x80"), ("gbk", b"\x81\x7f"),
        ("gb18030", b"\x81\x30\x81"), ("gb2312", b"\xa1"), ("euckr", b"\x81\x5b"),
        ("ucs2", b"\xd8\0"), ("ucs2", b"\xd8\x3d\xdc\xa9"),
        ("utf16", b"\0a\xd8\0"), ("utf16le", b"a"), ("utf32", b"\0\x11\0\0"),
        ("utf8mb4", b"\xed\xa0\x80"),
    ],
)  # fmt: skip
def test_bytes_that_are_no_characters_are_reported(charset: str, raw: bytes) -> None:
    """Guards against a text that would be shorter, or another one, without a word."""
    column = Column("v", String(), "text", wire=f"text:{charset}")
    with pytest.raises(NotText, match=NOT_TEXT):
        finish(pa.array([raw], pa.binary()), column)


@pytest.mark.parametrize("charset", CHARACTERS)
def test_texts_of_a_set_of_several_bytes_come_back(charset: str) -> None:
    """Guards the way character by character, which a code without a character leads to, against
    losing its place: the same characters as by the codec, in any mixture with what comes before."""
    codec = CODECS[charset]
    holes = {"gb2312": b"\xa2\xa1", "gbk": b"\xa1\x40", "gb18030": b"\xfe\x39\xfe\x39",
        "big5": b"\xf9\xdd",
             "cp932": b"\x81\xad", "sjis": b"\x81\xad", "ujis": b"\xa2\xaf",
             "euckr": b"\xa2\xe8"}  # fmt: skip
    texts = ["漢字 and ASCII\\~", "\0\x7f一二三", "".join(map(chr, range(0x4E00, 0x9FA6)))]
    decode = decoder_of(charset)
    for text in texts:
        raw = text.encode(codec, errors="ignore")
        plain = codecs.decode(raw, codec)
        assert len(plain) > 3
        assert decode(raw) == plain
        assert decode(holes[charset] + raw + holes[charset]) == f"?{plain}?"


def test_a_set_without_a_table_is_not_known() -> None:
    """Guards against a guess: text in such a set is reported before anything is copied."""
    assert not any(map(is_known, ("eucjpms", "tis620", "binary", "")))
    assert all(map(is_known, [*UTF8, *CODECS]))
