"""The neutral form of tables, values, changes and positions."""
