"""Events: from the body of a request to files on the disk, each row once."""
