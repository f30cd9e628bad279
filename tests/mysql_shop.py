"""The demo's shop (demo/shop.sql) as MySQL and MariaDB have it, and some traffic on it."""

from __future__ import annotations

from tests.mysql_servers import SqlDatabase

TABLES = ("customers", "products", "orders", "order_lines", "payments", "inventory", "page_views")
ORDERS = 400
SCHEMA = (
    "CREATE TABLE customers (id bigint AUTO_INCREMENT PRIMARY KEY, reference binary(16) NOT NULL,"
    " name varchar(80) NOT NULL, email text, is_active tinyint(1) NOT NULL DEFAULT 1,"
    " tier enum('basic','silver','gold') NOT NULL DEFAULT 'basic', born_on date, preferences "
    "json NOT NULL,"
    " created_at timestamp(6) NOT NULL DEFAULT current_timestamp(6))",
    "CREATE TABLE products (id int AUTO_INCREMENT PRIMARY KEY, sku varchar(20) NOT NULL UNIQUE, "
    "name text NOT NULL,"
    " price decimal(12,2) NOT NULL, tags set('new','sale','last') NOT NULL DEFAULT '', "
    "attributes json,"
    " picture mediumblob, added_on date NOT NULL)",
    "CREATE TABLE orders (id bigint AUTO_INCREMENT PRIMARY KEY, customer_id bigint NOT NULL,"
    " status enum('placed','paid','shipped','returned') NOT NULL DEFAULT 'placed',"
    " total decimal(12,2) NOT NULL DEFAULT 0, is_gift bit(1) NOT NULL DEFAULT 0, note text,"
    " placed_at timestamp(6) NOT NULL DEFAULT current_timestamp(6), shipped_at datetime(6),"
    " FOREIGN KEY (customer_id) REFERENCES customers (id))",
    "CREATE TABLE order_lines (order_id bigint NOT NULL, line int NOT NULL, product_id int NOT "
    "NULL,"
    " quantity int unsigned NOT NULL, price decimal(12,2) NOT NULL, PRIMARY KEY (order_id, line),"
    " FOREIGN KEY (order_id) REFERENCES orders (id))",
    "CREATE TABLE payments (id varchar(36) PRIMARY KEY, order_id bigint NOT NULL,"
    " method enum('card','transfer','invoice') NOT NULL, amount decimal(12,2) NOT NULL, receipt "
    "varbinary(64),"
    " paid_at timestamp(6) NOT NULL DEFAULT current_timestamp(6), FOREIGN KEY (order_id) "
    "REFERENCES orders (id))",
    "CREATE TABLE inventory (product_id int PRIMARY KEY, quantity int NOT NULL, counted_on date,"
    " changed_at datetime(6) NOT NULL DEFAULT current_timestamp(6))",
    "CREATE TABLE page_views (viewed_at timestamp(6) NOT NULL DEFAULT current_timestamp(6), "
    "customer_id bigint,"
    " path text NOT NULL, agent varchar(40), duration_ms int)",
)
_G = "WITH RECURSIVE g AS (SELECT 1 i UNION ALL SELECT i + 1 FROM g WHERE i < {n})"
ROWS = (
    ("customers", "id, reference, name, email, is_active, tier, born_on, preferences", 40,
     "i, unhex(left(sha2(i, 256), 32)), concat('Customer ', i), concat('c', i, '@example.com'), "
     "i % 17 <> 0,"
     " elt(1 + i % 3, 'basic', 'silver', 'gold'), date_add('1950-01-01', interval i day),"
     " json_object('news', i % 2 = 0, 'colour', 'blue')"),
    ("products", "id, sku, name, price, tags, attributes, picture, added_on", 100,
     "i, concat('SKU-', lpad(i, 6, '0')), concat('Product ', i, ' – ünïcode ✓'), i + 0.99,"
     " elt(1 + i % 3, '', 'new', 'new,sale'), json_object('weight', i % 50), "
     "unhex(repeat(sha2(i, 256), 15)), '2023-01-01'"),
    ("orders", "id, customer_id, status, total, is_gift, note, placed_at, shipped_at", ORDERS,
     "i, 1 + i * 7919 % 40, elt(1 + i % 3, 'placed', 'paid', 'shipped'), i / 100, i % 13 = 0,"
     " if(i % 5 = 0, concat('At the door, number ', i), NULL), date_add('2025-01-01', interval i "
     "minute),"
     " if(i % 3 = 2, date_add('2025-01-03', interval i minute), NULL)"),
    ("order_lines", "order_id, line, product_id, quantity, price", ORDERS,
    "i, 1, 1 + i * 31 % 100, 1 + i % 5, i + 0.99"),
    ("payments", "id, order_id, method, amount, receipt", ORDERS,
     "left(sha2(i, 256), 36), i, elt(1 + i % 3, 'card', 'transfer', 'invoice'), i / 100, "
     "unhex(sha2(concat('r', i), 256))"),
    ("inventory", "product_id, quantity, counted_on", 100, "i, 1000 + i % 500, '2025-06-01'"),
    ("page_views", "customer_id, path, agent, duration_ms", 100,
    "i, concat('/product/', i), 'browser', i % 30000"),
)  # fmt: skip


def make_shop(database: SqlDatabase) -> None:
    """The tables with their rows."""
    fills = [
        f"INSERT INTO {table} ({columns}) {_G.format(n=count)} SELECT {values} FROM g"  # noqa: S608
        for table, columns, count, values in ROWS
    ]
    database.execute(*SCHEMA, *fills)


def change(database: SqlDatabase, number: int) -> None:
    """One order is placed, another paid, shipped and taken back."""
    new = ORDERS + number
    database.execute(
        "START TRANSACTION",
        f"INSERT INTO orders (id, customer_id, total, is_gift) VALUES ({new}, 1, 12.5, 1)",
        f"INSERT INTO order_lines VALUES ({new}, 1, 7, 2, 6.25), ({new}, 2, 8, 1, 0.01)",
        "UPDATE inventory SET quantity = quantity - 2, changed_at = now(6) WHERE product_id = 7",
        f"INSERT INTO payments (id, order_id, method, amount) VALUES (uuid(), {new}, 'card', 12.5)",
        "COMMIT",
        f"UPDATE orders SET status = 'shipped', shipped_at = now(6) WHERE id = {number}",
        f"UPDATE customers SET preferences = json_object('n', {number}), tier = 'gold' WHERE id "
        f"= {number}",
        f"DELETE FROM payments WHERE order_id = {number}",
        f"DELETE FROM order_lines WHERE order_id = {number}",
        f"INSERT INTO page_views (customer_id, path) VALUES ({number}, '/again'), ({number}, "
        "'/again')",
        f"UPDATE page_views SET agent = 'other' WHERE customer_id = {number} LIMIT 2",
        f"DELETE FROM page_views WHERE customer_id = {number + 50}",
        f"UPDATE products SET sku = concat('new-', sku), tags = 'sale,last' WHERE id = {number}",
    )
