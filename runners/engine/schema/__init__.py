"""What the source's tables look like, and what follows when that changes."""
