"""HTTP: the application, its limits, headers and errors, and what watches it."""
