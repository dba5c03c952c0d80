"""Measurements of speed and memory, each a module with `measure()`."""
