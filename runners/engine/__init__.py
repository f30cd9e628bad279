"""The engine: capture, decode, snapshot, merge. Knows neither Django nor Celery, and no plugin by
name."""
