"""Character sets of the servers as Python codecs, and columns of their bytes as UTF-8. Asks no server."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pyarrow as pa

UTF8 = frozenset({"utf8mb4", "utf8mb3", "utf8", "ascii"})
CODECS = {
    "latin1": "cp1252", "latin2": "iso8859_2", "latin5": "iso8859_9", "latin7": "iso8859_13",
    "cp1250": "cp1250", "cp1251": "cp1251", "cp1256": "cp1256", "cp1257": "cp1257", "cp850": "cp850",
    "cp852": "cp852", "cp866": "cp866", "greek": "iso8859_7", "hebrew": "iso8859_8",
    "koi8r": "koi8_r", "koi8u": "koi8_u", "macroman": "mac_roman",
    "gbk": "gbk", "gb2312": "gb2312", "gb18030": "gb18030", "big5": "big5", "cp932": "cp932",
    "ujis": "euc_jp", "euckr": "cp949", "sjis": "shift_jis",
    "ucs2": "utf_16_be", "utf16": "utf_16_be", "utf16le": "utf_16_le", "utf32": "utf_32_be",
}  # fmt: skip
SINGLE_BYTE = frozenset({
    "latin1", "latin2", "latin5", "latin7", "cp1250", "cp1251", "cp1256", "cp1257", "cp850", "cp852", "cp866",
    "greek", "hebrew", "koi8r", "koi8u", "macroman",
})  # fmt: skip
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


def is_known(charset: str) -> bool:
    """Whether text of this character set can be read."""
    return charset in UTF8 or charset in CODECS


def decoder_of(charset: str) -> Callable[[bytes], str]:
    """Bytes to text; ValueError (UnicodeDecodeError) for bytes that are none."""
    codec = CODECS[charset]
    if charset not in SINGLE_BYTE:
        return lambda raw: raw.decode(codec)
    table = {b: _character(charset, b) for b in range(128, 256)}
    return lambda raw: raw.decode("latin-1").translate(table)


def _character(charset: str, number: int) -> str:
    """What the servers make of a byte; a question mark where the set has a hole."""
    differs = DIFFERENCES.get(charset, {})
    return differs.get(number) or bytes([number]).decode(CODECS[charset], errors="replace").replace(
        "\ufffd", HOLE
    )


def to_utf8(values: pa.Array, charset: str) -> pa.Array:
    """A binary array in `charset` as strings; ValueError where bytes are not of that character set."""
    if charset not in WIDE and _is_ascii(values):
        return values.cast(pa.string())
    decode = decoder_of(charset)
    coded = values.dictionary_encode()
    words = pa.array([decode(v) for v in coded.dictionary.to_pylist()], pa.string())
    return words.take(coded.indices)


def _is_ascii(values: pa.Array) -> bool:
    buffer = values.buffers()[2]
    return buffer is None or not (np.frombuffer(buffer, np.uint8) > 127).any()
