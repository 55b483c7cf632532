"""Which partitions to move between a broker's log directories, so that these are equally full."""
