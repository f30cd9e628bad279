"""Moments of the source at which all tables of a target are level."""
