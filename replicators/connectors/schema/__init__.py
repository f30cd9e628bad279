"""Changes of a table's columns: what is different, and what the policy does about it."""
