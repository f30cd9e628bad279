"""Fixtures of the integration tests: worlds for those that run the whole data path."""

from __future__ import annotations

from tests.world_fixtures import twin_maker, world_maker

__all__ = ["twin_maker", "world_maker"]
