"""Folded changes into a target's table, and what keeps that table right."""
