"""The log lines of runs: written, read, with secrets masked."""
