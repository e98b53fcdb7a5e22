"""Who may do what: keys, sessions, permissions, and the log of every decision."""
