"""Decodes raw segments into change files, one Spark task per segment."""
