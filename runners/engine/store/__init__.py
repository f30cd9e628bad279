"""What the engine must remember: protocols, and their twins in memory."""
