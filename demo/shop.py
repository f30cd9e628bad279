"""Makes the demo's source: the database `shop`, its tables and rows, and the replicator's login."""

from __future__ import annotations

from pathlib import Path

import psycopg

from demo.postgres import EmbeddedPostgres

DATABASE = "shop"
SCHEMA = "shop"
LOGIN = "replicator"
ORDERS = 200_000
TABLES = (
    "customers",
    "products",
    "orders",
    "order_lines",
    "payments",
    "inventory",
    "page_views",
)


def install(server: EmbeddedPostgres, *, database: str = DATABASE, orders: int = ORDERS) -> bool:
    """Make the database and load the shop unless it is already complete. Returns True if it was
    made now."""
    if not server.execute("SELECT 1 FROM pg_database WHERE datname = %s", [database]):
        server.execute(f'CREATE DATABASE "{database}"')
    if server.execute("SELECT 1 FROM pg_namespace WHERE nspname = 'shop'", database=database):
        return False
    with server.connect(database, autocommit=False) as connection:
        load(connection, orders=orders)
    server.execute("VACUUM ANALYZE", database=database)
    return True


def load(connection: psycopg.Connection[object], *, orders: int = ORDERS) -> None:
    """Run shop.sql in the connection's transaction. The caller commits."""
    connection.execute("SELECT set_config('shop.orders', %s, true)", [str(orders)])
    connection.execute(Path(__file__).with_name("shop.sql").read_bytes())


def grant_login(server: EmbeddedPostgres, *, database: str = DATABASE, login: str = LOGIN) -> None:
    """Make the replicator's login. It may replicate, read and publish the shop's tables; it is not
    a superuser."""
    known = server.execute("SELECT 1 FROM pg_roles WHERE rolname = %s", [login])
    server.execute(
        f"""{"ALTER" if known else "CREATE"} ROLE {login} LOGIN REPLICATION PASSWORD '{server.password}';
        GRANT CREATE, CONNECT ON DATABASE "{database}" TO {login};
        DO $$
        DECLARE known regclass;
        BEGIN
            FOR known IN SELECT oid FROM pg_class
                         WHERE relnamespace = 'shop'::regnamespace AND relkind IN ('r', 'p') LOOP
                EXECUTE format('ALTER TABLE %s OWNER TO {login}', known);
            END LOOP;
        END $$;
        GRANT USAGE, CREATE ON SCHEMA shop TO {login}""",  # noqa: E501
        database=database,
    )
