"""What happens to single tables of a replicator."""
