"""Makes live traffic on the demo's shop: short transactions over several tables, with DEMO_RATE row
changes a second."""

from __future__ import annotations

import contextlib
import os
import random
import signal
import sys
import threading
import time
import uuid
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import psycopg

RATE = 50.0
BURST_SECONDS = 1.0
Cursor = psycopg.Cursor[Any]


@dataclass
class Traffic:
    """Changes the shop through one connection until `stop` is set. Reconnects after the server was
    away."""

    dsn: str = field(repr=False)
    rate: float = RATE
    seed: int | None = None
    stop: threading.Event = field(default_factory=threading.Event)
    changes: int = 0
    transactions: int = 0

    def __post_init__(self) -> None:
        self._random = random.Random(self.seed)  # noqa: S311 (play data)
        self._customers = self._products = self._orders = 0
        actions: list[tuple[Callable[[Cursor], int], int]] = [
            (self._order, 6),
            (self._pay, 5),
            (self._ship, 8),
            (self._cancel, 2),
            (self._customer, 1),
            (self._customer_changes, 4),
            (self._product_changes, 2),
            (self._views, 6),
        ]
        self._actions = [act for act, _ in actions]
        self._weights = [weight for _, weight in actions]

    def run(self) -> None:
        """Make changes until `stop` is set."""
        while not self.stop.is_set():
            with contextlib.suppress(psycopg.Error), psycopg.connect(self.dsn) as connection:
                self._work(connection)
            self.stop.wait(0.5)

    def _work(self, connection: psycopg.Connection[Any]) -> None:
        cursor = connection.cursor()
        cursor.execute("SET search_path = shop; SET synchronous_commit = off")
        self._look(cursor)
        connection.commit()
        owed = 0.0
        last = time.monotonic()
        while not self.stop.is_set():
            now = time.monotonic()
            owed = min(owed + (now - last) * self.rate, self.rate * BURST_SECONDS)
            last = now
            while owed >= 1 and not self.stop.is_set():
                done = self.once(cursor)
                connection.commit()
                owed -= done or 0.1
                self.changes += done
                self.transactions += 1
            self.stop.wait(0.02)

    def _look(self, cursor: Cursor) -> None:
        cursor.execute(
            "SELECT (SELECT max(id) FROM customers), (SELECT max(id) FROM products),"
            " (SELECT max(id) FROM orders)"
        )
        self._customers, self._products, self._orders = cursor.fetchone() or (1, 1, 1)

    def once(self, cursor: Cursor) -> int:
        """Run one transaction's statements without a commit. Returns the number of rows changed."""
        return self._random.choices(self._actions, self._weights)[0](cursor)

    # -- the kinds of changes; each returns the number of rows changed

    def _any(self, last: int) -> int:
        return self._random.randint(1, max(last, 1))

    def _recent_order(self) -> int:
        return max(1, self._orders - int(self._random.expovariate(1 / 200)))

    def _order(self, cursor: Cursor) -> int:
        customer, lines = self._any(self._customers), self._random.randint(1, 4)
        cursor.execute(
            "INSERT INTO orders (customer_id, total, is_gift, note) VALUES (%s, %s, %s, %s) "
            "RETURNING id",
            [
                customer,
                self._random.randint(100, 99999) / 100,
                self._random.random() < 0.1,
                self._random.choice((None, "Ring twice", "Grüße, – ☕")),
            ],
        )
        order = (cursor.fetchone() or (0,))[0]
        self._orders = max(self._orders, order)
        changed = 1
        for line in range(1, lines + 1):
            product, quantity = self._any(self._products), self._random.randint(1, 5)
            cursor.execute(
                "INSERT INTO order_lines VALUES (%s, %s, %s, %s, 9.99)",
                [order, line, product, quantity],
            )
            cursor.execute(
                "UPDATE inventory SET quantity = quantity - %s, changed_at = localtimestamp"
                " WHERE product_id = %s",
                [quantity, product],
            )
            changed += 1 + cursor.rowcount
        return changed + self._views(cursor)

    def _pay(self, cursor: Cursor) -> int:
        order = self._recent_order()
        cursor.execute(
            "UPDATE orders SET status = 'paid' WHERE id = %s AND status = 'placed'", [order]
        )
        changed = cursor.rowcount
        if changed:
            cursor.execute(
                "INSERT INTO payments (id, order_id, method, amount, receipt)"
                " SELECT %s, id, 'card', total, decode(md5(id::text), 'hex') FROM orders WHERE "
                "id = %s",
                [uuid.UUID(int=self._random.getrandbits(128)), order],
            )
            changed += cursor.rowcount
        return changed

    def _ship(self, cursor: Cursor) -> int:
        cursor.execute(
            "UPDATE orders SET status = 'shipped', shipped_at = localtimestamp WHERE id = %s",
            [self._recent_order()],
        )
        return cursor.rowcount

    def _cancel(self, cursor: Cursor) -> int:
        order = self._recent_order()
        changed = 0
        for statement in (
            "SELECT 1 FROM orders WHERE id = %s FOR UPDATE",
            "DELETE FROM payments WHERE order_id = %s",
            "DELETE FROM order_lines WHERE order_id = %s",
            "DELETE FROM orders WHERE id = %s",
        ):
            cursor.execute(statement, [order])
            changed += cursor.rowcount if statement.startswith("DELETE") else 0
        return changed

    def _customer(self, cursor: Cursor) -> int:
        cursor.execute(
            "INSERT INTO customers (reference, name, email, born_on, preferences)"
            " VALUES (%s, 'New customer', NULL, '1990-02-28', jsonb_build_object('history',"
            " (SELECT string_agg(md5(random()::text), '') FROM generate_series(1, 120)))) "
            "RETURNING id",
            [uuid.UUID(int=self._random.getrandbits(128))],
        )
        self._customers = max(self._customers, (cursor.fetchone() or (0,))[0])
        return 1

    def _customer_changes(self, cursor: Cursor) -> int:
        """Change a customer but not the large `preferences`: the log then does not contain them
        (TOAST)."""
        customer = self._any(self._customers)
        if self._random.random() < 0.5:
            customer = max(50, customer // 50 * 50)
        cursor.execute(
            "UPDATE customers SET tier = %s, is_active = NOT is_active WHERE id = %s",
            [self._random.choice(("basic", "silver", "gold")), customer],
        )
        return cursor.rowcount

    def _product_changes(self, cursor: Cursor) -> int:
        cursor.execute(
            "UPDATE products SET price = price + 0.01, tags = tags[1:2] || ARRAY['new'] WHERE id "
            "= %s",
            [self._any(self._products)],
        )
        return cursor.rowcount

    def _views(self, cursor: Cursor) -> int:
        views = self._random.randint(1, 3)
        cursor.execute(
            "INSERT INTO page_views (customer_id, path, agent, duration_ms)"
            " SELECT %s, '/product/' || k, 'browser', k * 100 FROM generate_series(1, %s) k",
            [self._any(self._customers), views],
        )
        return views


def main() -> int:
    """`python -m demo.traffic`: DEMO_SOURCE_DSN names the database, DEMO_RATE the speed. SIGTERM
    ends it."""
    traffic = Traffic(os.environ["DEMO_SOURCE_DSN"], rate=float(os.environ.get("DEMO_RATE", RATE)))
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda *_: traffic.stop.set())
    traffic.run()
    return 0


if __name__ == "__main__":
    sys.exit(main())
