"""First and fresh copies of tables, in one consistent view of the source."""
