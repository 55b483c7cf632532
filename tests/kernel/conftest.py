from tests.run import KERNELS

# Where no compiled kernel is wanted, there is nothing to compare the twin with.
collect_ignore_glob = [] if "fast" in KERNELS else ["test_same_*.py"]
