"""Values that `kseg.open` returns: log directories, partitions and segments."""
