"""What every plugin that speaks to a PostgreSQL server needs: parameters, TLS, quoting, errors."""
