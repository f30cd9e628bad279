"""Actions on single tables of a replicator."""
