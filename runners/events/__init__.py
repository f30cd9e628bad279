"""Events: their rows and their texts."""
