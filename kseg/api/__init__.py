"""What `kseg.open` gives: log directories, partitions and segments as values."""
