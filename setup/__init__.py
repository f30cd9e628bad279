"""Set-up of a clone: runs before anything is installed, so it uses the standard library only."""
