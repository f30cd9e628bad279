"""Arrow columns: their buffers, and unsupported values."""
