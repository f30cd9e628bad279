"""Spark: the session, its workers, and what every task has around it."""
