"""Metrics of runs and tables: recorded, added up, drawn."""
