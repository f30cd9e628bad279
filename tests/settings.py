"""The settings of the tests: those of development, for the tests and the processes that they start,
whatever the default is."""

from __future__ import annotations

import os

os.environ.setdefault("DEBUG", "true")

from replicators.project.settings import *  # noqa: E402, F403
