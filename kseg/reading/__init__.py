"""Log files as batches and damages: what stands at a position, and where to go on after damage."""
