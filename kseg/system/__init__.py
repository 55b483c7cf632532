"""What kseg asks of the system: files, directories, the page cache, processes, signals."""
