"""Writes folded changes to a target's table, and keeps that table right."""
