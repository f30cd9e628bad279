"""`python -m demo [--reset | --dev] [--target NAME]`: run the demo (or the development servers) in
the foreground, once for each clone."""

from __future__ import annotations

import argparse
import fcntl
import os
import sys
from pathlib import Path

from demo.parent import Parent, say
from demo.place import ROOT, Place
from demo.shop import ORDERS
from demo.targets import TARGETS


def main() -> int:
    """Run until Ctrl-C. A second start in the same clone only says where the first one runs."""
    parser = argparse.ArgumentParser(prog="demo", description=__doc__)
    parser.add_argument(
        "--reset", action="store_true", help="forget the earlier demo and start afresh"
    )
    parser.add_argument(
        "--dev", action="store_true", help="the program with DEBUG, without demo data"
    )
    parser.add_argument("--folder", type=Path, help="where it keeps its things (default: .run)")
    parser.add_argument("--orders", type=int, default=ORDERS, help="rows of the largest table")
    parser.add_argument(
        "--target",
        default=os.environ.get("DEMO_TARGET") or "lakehouse",
        help=f"where the shop is copied to: {', '.join(TARGETS)} (or DEMO_TARGET)",
    )
    arguments = parser.parse_args()
    if arguments.target not in TARGETS:
        parser.error(f"DEMO_TARGET is one of {', '.join(TARGETS)}, not {arguments.target}")
    folder = arguments.folder or ROOT / ("var/dev" if arguments.dev else ".run")
    place = Place(folder.resolve(), is_dev=arguments.dev)
    place.folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    with (place.folder / "lock").open("a") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return _is_running(place, wants_reset=arguments.reset)
        parent = Parent(place, orders=arguments.orders, target=arguments.target)
        if arguments.reset:
            parent.forget()
        return parent.run()


def _is_running(place: Place, *, wants_reset: bool) -> int:
    url = place.read(place.result).get("url")
    say(f"It is running already: {url}" if url else "It is being started already.")
    if wants_reset:
        say("Stop it first (Ctrl-C there), then reset.")
    return 1 if wants_reset else 0


if __name__ == "__main__":
    sys.exit(main())
