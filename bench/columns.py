"""Reads a segment into pyarrow record batches by kseg's Python API, and prints the number of rows: FILE."""

import sys
from pathlib import Path

import kseg

print(sum(batch.num_rows for batch in kseg.open_segment(Path(sys.argv[1])).to_arrow()))
