#!/usr/bin/env python
"""The command line of the Django project; holds no logic."""

from __future__ import annotations

import os
import sys

from django.core.management import execute_from_command_line

if __name__ == "__main__":
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "replicators.project.settings")
    execute_from_command_line(sys.argv)
