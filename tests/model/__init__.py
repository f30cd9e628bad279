"""A checker that knows nothing of the engine, validators of its change files, and a random
adversary."""
