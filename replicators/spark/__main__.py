"""`python -m replicators.spark FILE.zip` packs the data source for a notebook elsewhere."""

from __future__ import annotations

import sys
import zipfile
from pathlib import Path

HERE = Path(__file__).resolve().parent


def pack(path: str) -> None:
    """Write the folder's modules as a zip file that Python can import from."""
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as made:
        made.writestr("replicators/__init__.py", "")
        for module in sorted(HERE.glob("*.py")):
            made.write(module, f"replicators/spark/{module.name}")


if __name__ == "__main__":
    if len(sys.argv) != 2:
        sys.exit("Say the file's name: python -m replicators.spark replicators-spark.zip")
    pack(sys.argv[1])
