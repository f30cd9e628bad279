"""Fixtures of the integration tests: worlds for those that run the whole data path."""

from __future__ import annotations

from tests.world_fixtures import app_template, twin_maker, world_maker

__all__ = ["app_template", "twin_maker", "world_maker"]
