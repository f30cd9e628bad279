"""The two days that the README's comparison begins with."""

from __future__ import annotations

from pathlib import Path

import pyarrow.csv as pc

from demo import days
from replicators.connectors.compare.config import read


def test_a_fifth_is_replaced_two_fifths_are_updated_and_two_fifths_stay() -> None:
    first, second = days.days(1_000)
    before, after = ({row[:5]: row[5:] for row in rows} for rows in (first, second))
    assert len(before) == len(after) == 1_000
    both = before.keys() & after.keys()
    assert len(both) == 800
    assert sum(before[k] != after[k] for k in both) == 400


def test_the_files_and_the_configuration_fit_each_other(tmp_path: Path) -> None:
    for form in ("iceberg", "delta", "parquet"):
        days.main([str(tmp_path), "--format", form, "--rows", "10"])
        config = read(tmp_path / "config.yaml")
        assert config.format == form
        for day in ("day1", "day2"):
            header = pc.read_csv(tmp_path / "data" / day / "part-0.csv").column_names
            assert tuple(header) == (*config.keys, *config.compared)
