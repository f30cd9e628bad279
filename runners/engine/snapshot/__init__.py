"""First and fresh copies of tables, in one consistent snapshot of the source."""
