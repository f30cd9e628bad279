"""Fixtures of the crash tests: a world for each module."""

from __future__ import annotations

from tests.world_fixtures import twin_maker, world_maker

__all__ = ["twin_maker", "world_maker"]
