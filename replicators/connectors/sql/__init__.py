"""What targets that are written by SQL share. The statements of every mode are made once here, as
sqlglot trees, and each target's dialect renders them. Nothing here reads a row or calls a
server."""
