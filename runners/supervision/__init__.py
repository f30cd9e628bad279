"""Runs as processes: started, watched, ended, and what is left of them removed."""
