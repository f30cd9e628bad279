"""The suites are a module of the program: their asserts shall explain themselves like those of a
test."""

import pytest

pytest.register_assert_rewrite(
    "replicators.connectors.contract.merging",
    "replicators.connectors.contract.sink",
    "replicators.connectors.contract.source",
    "replicators.connectors.contract.target",
)
