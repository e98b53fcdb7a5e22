"""adsbpc where schedulers run it: fronts that run the program and know its exit codes."""
