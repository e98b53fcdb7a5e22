"""The command line: thin fronts, one file a command."""
