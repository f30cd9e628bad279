"""Compares source and target of a replicator, beside its run."""
