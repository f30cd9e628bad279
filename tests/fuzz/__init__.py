"""Mutated real logs against the decoders, millions at a time: `python -m tests.fuzz
mysql|postgresql --events N --seed S`."""
