"""Fixtures of the model's tests: worlds, as the crash tests have them."""

from __future__ import annotations

from tests.world_fixtures import twin_maker, world_maker

__all__ = ["twin_maker", "world_maker"]
