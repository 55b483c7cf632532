"""Services of the operating system: files, directories, the page cache, processes, signals."""
