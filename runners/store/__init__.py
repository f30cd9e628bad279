"""The engine's store in Django's database."""
