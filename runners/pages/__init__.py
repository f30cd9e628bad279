"""The pages of what runs."""
