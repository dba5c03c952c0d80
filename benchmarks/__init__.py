"""Measurements of speed, memory and quality, each a module whose `--json FILE` keeps its numbers."""
