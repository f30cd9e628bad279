"""Raw segments into change files, one Spark task a segment."""
