"""`python -m ultr`."""

from ultr.cli import main

main()
