"""Attacks on everything that reads what somebody else may have written or damaged."""
