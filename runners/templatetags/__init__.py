"""Template tags of what runs."""
