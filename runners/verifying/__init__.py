"""Verifications and repairs: what people ask for, what the process reports, what pages show."""
