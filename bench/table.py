"""Reads a partition as pyarrow record batches by kseg's Python API, and prints the number of rows: PARTITION."""

import sys

import kseg

print(sum(batch.num_rows for batch in kseg.open(sys.argv[1]).to_arrow()))
