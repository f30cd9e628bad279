"""Row filters: their language, and its forms for SQL and Arrow."""
