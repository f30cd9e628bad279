"""The vocabulary that sources, targets and the engine share; knows no plugin, no Django and no
Spark."""
