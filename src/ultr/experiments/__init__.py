"""Whole runs, from data to result."""
