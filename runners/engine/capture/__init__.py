"""Moves the source's log, unchanged, into raw segments."""
