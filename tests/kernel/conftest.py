from tests.run import KERNELS

# Without the compiled kernel, there is nothing to compare the twin with.
collect_ignore_glob = [] if "fast" in KERNELS else ["test_same_*.py"]
