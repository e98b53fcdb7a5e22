"""Private ad measurement that runs every day."""

__version__ = "0.1.0"
