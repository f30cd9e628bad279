"""Statements: replicators made, changed and shown by lines of text, as with a database's
changefeeds."""
