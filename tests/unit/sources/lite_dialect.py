"""A kind of database that the program does not know: SQLite under another name."""

from __future__ import annotations

from sqlalchemy.dialects.sqlite.pysqlite import SQLiteDialect_pysqlite


class LiteDialect(SQLiteDialect_pysqlite):
    """SQLAlchemy finds it under the name `lite`."""

    name = "lite"
    supports_statement_cache = True
