"""Benchmarks as ratios to a plain scan of the same files in the same run."""
