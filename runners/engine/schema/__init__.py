"""The source's tables' schemas, and what follows when they change."""
