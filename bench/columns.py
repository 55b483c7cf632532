"""Reads a segment into pyarrow record batches by kseg.arrow, and prints the number of rows: FILE."""

import sys
from pathlib import Path

from kseg.arrow import record_batches

print(sum(batch.num_rows for batch in record_batches(Path(sys.argv[1]))))
