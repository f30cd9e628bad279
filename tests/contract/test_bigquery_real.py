"""The promises of a merge target on a real project of Google, which docs/bigquery.md says how to
run. Each test makes a dataset and removes it; all of them cost some cents at most."""

from __future__ import annotations

import os
import uuid
from collections.abc import Iterator
from contextlib import closing

import pytest

from replicators.targets.bigquery.connection import open_client
from replicators.targets.bigquery.params import BigQueryParams
from tests.contract import test_bigquery as emulated

PROJECT = os.environ.get("BIGQUERY_TEST_PROJECT", "")
pytestmark = [
    pytest.mark.real_bigquery,
    pytest.mark.timeout(900),
    pytest.mark.skipif(not PROJECT, reason="BIGQUERY_TEST_PROJECT names no project"),
]


class RealProject:
    """Supplies a dataset of each test's own, with the credentials of the environment."""

    @pytest.fixture
    def params(self) -> Iterator[BigQueryParams]:
        dataset = f"replicators_test_{uuid.uuid4().hex[:12]}"
        location = os.environ.get("BIGQUERY_TEST_LOCATION", "US")
        found = BigQueryParams(project=PROJECT, dataset=dataset, location=location)
        with closing(open_client(found)) as made:
            made.create_dataset(dataset)
            yield found
            made.delete_dataset(dataset, delete_contents=True, not_found_ok=True)


class TestRealBigQuery(RealProject, emulated.TestBigQuery):
    """As the emulator's."""


class TestRealModes(RealProject, emulated.TestModes):
    """As the emulator's."""
