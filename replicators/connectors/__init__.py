"""The vocabulary that sources, targets and the engine share. It knows no plugin, no Django and no
Spark."""
