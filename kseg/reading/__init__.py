"""Log files as batches and damages, with the continuation after damage."""
