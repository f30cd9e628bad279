"""A real browser on a real web process."""
