"""Spark: the session, its workers, and the frame around every task."""
