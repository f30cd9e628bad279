"""Arrow columns: their buffers, and values that they can't carry."""
