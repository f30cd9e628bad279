"""The log lines of runs: written, read, cleared of secrets."""
