"""Rows that a target can't hold, kept beside it until they can be replayed."""
