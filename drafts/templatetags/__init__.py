"""Template tags of drafts."""
