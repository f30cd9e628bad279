"""The engine's memory in Django's database."""
