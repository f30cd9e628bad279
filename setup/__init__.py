"""Set-up of a clone. It runs before anything is installed, so it uses the standard library only."""
