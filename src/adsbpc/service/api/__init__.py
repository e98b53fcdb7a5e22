"""The API under /v1: what machines use. Each file is one kind of thing."""
