"""What happened, as rows with texts."""
