"""Mutants: copies of the code with one small fault each, to see whether the tests of a package find it."""
