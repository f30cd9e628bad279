"""Subscribers: registering them, what they read, what is kept for them, how they wait."""
