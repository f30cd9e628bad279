"""Maps the servers' character sets to Python codecs, and converts columns of their bytes to UTF-8.
Asks no server."""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import cache

import numpy as np
import pyarrow as pa

UTF8 = frozenset({"utf8mb4", "utf8mb3", "utf8"})
CODECS = {
    "ascii": "ascii", "latin1": "cp1252", "latin2": "iso8859_2", "latin5": "iso8859_9",
    "latin7": "iso8859_13",
    "cp1250": "cp1250", "cp1251": "cp1251", "cp1256": "cp1256", "cp1257": "cp1257",
    "cp850": "cp850",
    "cp852": "cp852", "cp866": "cp866", "greek": "iso8859_7", "hebrew": "iso8859_8",
    "koi8r": "koi8_r", "koi8u": "koi8_u", "macroman": "mac_roman",
    "gbk": "gbk", "gb2312": "gb2312", "gb18030": "gb18030", "big5": "big5", "cp932": "cp932",
    "ujis": "euc_jp", "euckr": "cp949", "sjis": "shift_jis",
    "ucs2": "utf_16_be", "utf16": "utf_16_be", "utf16le": "utf_16_le", "utf32": "utf_32_be",
}  # fmt: skip
HOLE = "?"
# Where the servers' tables differ from Python's codecs; the same in MariaDB 10.11 and MySQL 9.7.
DIFFERENCES: dict[str, dict[int, str]] = {
    "latin1": {b: chr(b) for b in (0x81, 0x8D, 0x8F, 0x90, 0x9D)},
    "cp1256": dict.fromkeys((0x8A, 0x8F, 0x98, 0x9A, 0x9F, 0xAA, 0xC0, 0xFF), HOLE),
    "cp866": {0xFC: "\u207f", 0xFD: "\xb2"},
    "greek": {0xA1: "\u02bd", 0xA2: "\u02bc", 0xA4: HOLE, 0xA5: HOLE, 0xAA: HOLE},
    "hebrew": {0xAF: "\u203e"},
    "koi8u": {0x95: "\u2022"},
}
WIDE = frozenset({"ucs2", "utf16", "utf16le", "utf32"})
# What a non-ASCII character looks like.
CHARACTERS = {
    "gb2312": rb"[\xa1-\xf7][\xa1-\xfe]",
    "gbk": rb"[\x81-\xfe][\x40-\x7e\x80-\xfe]",
    "gb18030": rb"[\x81-\xfe](?:[\x40-\x7e\x80-\xfe]|[\x30-\x39][\x81-\xfe][\x30-\x39])",
    "big5": rb"[\xa1-\xf9][\x40-\x7e\xa1-\xfe]",
    "cp932": rb"[\xa1-\xdf]|[\x81-\x9f\xe0-\xfc][\x40-\x7e\x80-\xfc]",
    "sjis": rb"[\xa1-\xdf]|[\x81-\x9f\xe0-\xfc][\x40-\x7e\x80-\xfc]",
    "ujis": rb"\x8e[\xa0-\xdf]|\x8f?[\xa1-\xfe][\xa1-\xfe]",
    "euckr": rb"[\x81-\xfe][\x41-\x5a\x61-\x7a\x81-\xfe]",
}
ROW = 94
# As `DIFFERENCES`, for character sets with multi-byte characters.
LONG_DIFFERENCES: dict[str, dict[bytes, str]] = {
    "gb18030": {b"\xa8\xbc": "\u1e3f", b"\x81\x35\xf4\x37": "\ue7c7"},
    "big5": {
        **dict.fromkeys((b"\xa1\x5a", b"\xa1\xc3", b"\xa1\xc5", b"\xa1\xfe", b"\xa2\x40",
        b"\xa2\xcc", b"\xa2\xce"),
                        "\ufffd"),
        **{bytes([0xF9, 0xD6 + n]): c for n,
        c in enumerate("\u7881\u92b9\u88cf\u58bb\u6052\u7ca7\u5afa")},
    },
    "sjis": {b"\x81\x5f": "\\"},
    "ujis": {
        b"\xa1\xc0": "\\",
        b"\x8e\xa0": 2 * HOLE,
        **{bytes([0xF5 + n // ROW, 0xA1 + n % ROW]): chr(0xE000 + n) for n in range(10 * ROW)},
        **{bytes([0x8F, 0xF5 + n // ROW,
        0xA1 + n % ROW]): chr(0xE3AC + n) for n in range(10 * ROW)},
    },
}  # fmt: skip


def is_known(charset: str) -> bool:
    """Whether text of this character set can be read."""
    return charset in UTF8 or charset in CODECS


@cache
def decoder_of(charset: str) -> Callable[[bytes], str]:
    """A function from bytes to text as the servers convert it. It raises ValueError for invalid
    bytes."""
    if charset in CHARACTERS:
        return _long_decoder(charset)
    codec = CODECS[charset]
    if charset == "ucs2":
        return _without_pairs
    if charset in WIDE:
        return lambda raw: raw.decode(codec)
    table = {b: _character(charset, b) for b in range(128, 256)}
    return lambda raw: raw.decode("latin-1").translate(table)


def _without_pairs(raw: bytes) -> str:
    """Decode UCS-2. It has no characters of four bytes: the servers show none, while a UTF-16 codec
    would."""
    text = raw.decode("utf_16_be")
    if max(text, default="") > "\uffff":
        raise ValueError("half of a pair")
    return text


def _long_decoder(charset: str) -> Callable[[bytes], str]:
    """A decoder for multi-byte sets. It uses Python's codec where both agree, and goes character by
    character where they may differ."""
    codec, differs = CODECS[charset], LONG_DIFFERENCES.get(charset, {})
    pattern = re.compile(rb"[\0-\x7f]|" + CHARACTERS[charset])
    misread = [re.escape(code) for code in differs if _read(code, codec) is not None]
    suspect = re.compile(b"|".join(misread) if misread else rb"(?!)")

    def character(code: bytes) -> str:
        return differs.get(code) or _read(code, codec) or HOLE

    def decode(raw: bytes) -> str:
        text = None if suspect.search(raw) else _read(raw, codec)
        if text is not None:
            return text
        codes = pattern.findall(raw)
        if sum(map(len, codes)) != len(raw):
            raise ValueError("no characters of this set")
        return "".join(map(character, codes))

    return decode


def _read(raw: bytes, codec: str) -> str | None:
    try:
        return raw.decode(codec)
    except UnicodeDecodeError:
        return None


def _character(charset: str, number: int) -> str:
    """The servers' character for a byte; a question mark where the set has none."""
    differs = DIFFERENCES.get(charset, {})
    return differs.get(number) or bytes([number]).decode(CODECS[charset], errors="replace").replace(
        "\ufffd", HOLE
    )


def to_utf8(values: pa.Array, charset: str) -> pa.Array:
    """A binary array in `charset` as strings; ValueError for bytes that are invalid in that
    character set."""
    if charset not in WIDE and _is_ascii(values):
        return values.cast(pa.string())
    decode = decoder_of(charset)
    coded = values.dictionary_encode()
    words = pa.array([decode(v) for v in coded.dictionary.to_pylist()], pa.string())
    return words.take(coded.indices)


def _is_ascii(values: pa.Array) -> bool:
    buffer = values.buffers()[2]
    return buffer is None or not (np.frombuffer(buffer, np.uint8) > 127).any()
