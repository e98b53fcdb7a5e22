"""`python -m adsbpc` is the `adsbpc` program."""

from adsbpc.cli.main import main

main()
