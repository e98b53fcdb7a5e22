"""What AdsBPC is compared with, each with its source and what it needs for privacy."""
