"""Folds many changes of a key into what a table's mode has to write. Pure functions."""
