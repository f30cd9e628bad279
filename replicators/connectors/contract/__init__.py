"""The promises of the protocols as test suites that a plugin's own tests inherit."""
