"""Raw segments are whole or not there; damage is seen (CORRECTNESS 27)."""

from __future__ import annotations

from pathlib import Path

import pytest

from replicators.connectors.problems.errors import ReplicationError
from runners.engine.changelog.segments import ChangeLog, read_segment


@pytest.fixture
def log(tmp_path: Path) -> ChangeLog:
    return ChangeLog(str(tmp_path), "r1", "a1")


def test_a_sealed_segment_reads_back(log: ChangeLog) -> None:
    """Guards the form of a raw segment: what `SegmentFile` writes, head, length and body, is what
    `read_segment` gives."""
    file = log.begin_segment(7, {"tables": [1]})
    file.append(b"abc")
    sealed = file.seal()
    head, body = read_segment(sealed.path, sealed.crc32, 7)
    assert head == {"tables": [1]}
    assert body.tobytes() == b"abc"
    assert sealed.size_bytes == Path(sealed.path).stat().st_size
    assert log.highest_number() == 7


@pytest.mark.parametrize("at", [0, 9, 20, -1])
def test_a_flipped_bit_is_an_error_that_names_the_segment(log: ChangeLog, at: int) -> None:
    """Guards the checksum in `read_segment` (CORRECTNESS 27): without it a flipped bit is decoded
    as somebody's data."""
    file = log.begin_segment(3, {"tables": []})
    file.append(b"x" * 100)
    sealed = file.seal()
    data = bytearray(Path(sealed.path).read_bytes())
    data[at] ^= 1
    Path(sealed.path).write_bytes(data)
    with pytest.raises(ReplicationError) as caught:
        read_segment(sealed.path, sealed.crc32, 3)
    assert caught.value.code == "log:segment-corrupt"
    assert caught.value.facts["segment"] == "3"


def test_what_is_not_listed_is_swept(log: ChangeLog) -> None:
    """Guards `ChangeLog.sweep`: files of a crash between rename and row would lie there for ever,
    and count against the log's limit."""
    kept = log.begin_segment(1, {}).seal()
    orphan = log.begin_segment(2, {}).seal()
    unfinished = log.begin_segment(3, {})
    unfinished.append(b"abc")
    assert log.sweep([kept.path]) == 2
    assert Path(kept.path).exists()
    assert not Path(orphan.path).exists()


def test_a_full_disk_is_a_clear_error() -> None:
    """Guards `write_error` where the log's folder can't be made: a run would end with an unexpected
    error in place of one that says what to do."""
    with pytest.raises(ReplicationError) as caught:
        ChangeLog("/dev/full", "r1", "a1")
    assert caught.value.code == "log:not-writable"


def test_the_highest_number_counts_files_that_no_row_lists(log: ChangeLog, tmp_path: Path) -> None:
    """Guards CORRECTNESS 4: without a look into the folder, unfinished files included, a number
    would be given out again after a crash."""
    assert log.highest_number() == 0
    log.begin_segment(4, {}).seal()
    Path(log.segments, "000000000009-a1.part").touch()
    assert ChangeLog(str(tmp_path), "r1", "a2").highest_number() == 9
