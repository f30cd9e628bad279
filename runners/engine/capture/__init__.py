"""The source's log, moved as it is into raw segments."""
