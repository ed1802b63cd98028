"""Why outcomes differ: the state that differs with them, and who set it."""
