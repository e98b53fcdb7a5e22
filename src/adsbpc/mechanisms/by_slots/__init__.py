"""Personal budgets as version 0.1 released them: campaigns that it began go on as planned."""
