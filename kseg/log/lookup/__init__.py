"""Where an offset or a time lies, and the way there."""
