"""Changes of a table's columns: what is different, and what follows by policy."""
