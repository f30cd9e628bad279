"""How neutral types fit a lakehouse table. Iceberg and Delta use the same Spark SQL types. Uses no
Spark session."""

from __future__ import annotations

from replicators.connectors.fits import TypeTable, as_text, integers, same_items, widened

_SMALL = {bits: widened("INT") for bits in (8, 16, 24)}
TYPES = TypeTable(
    boolean="BOOLEAN",
    integer=integers(
        {**_SMALL, 32: "INT", 64: "BIGINT"},
        {**_SMALL, 32: widened("BIGINT"), 64: widened("DECIMAL(20,0)")},
    ),
    decimal=lambda kind: f"DECIMAL({kind.precision},{kind.scale})",
    floats={32: "FLOAT", 64: "DOUBLE"},
    text="STRING",
    binary="BINARY",
    date="DATE",
    time=as_text("STRING", "kept as text (HH:MM:SS.ffffff)"),
    timestamp="TIMESTAMP_NTZ",
    moment="TIMESTAMP",
    json=as_text("STRING"),
    uuid=as_text("STRING"),
    enum=as_text("STRING"),
    array=same_items,
)
"""Nothing becomes text without a note."""
fit = TYPES.fit
