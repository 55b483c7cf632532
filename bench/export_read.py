"""Reads a partition like `kseg export`, and prints the number of rows: PARTITION."""

import sys

from kseg.cluster.copies import copies_of, find_replicas
from kseg.export.plan import Splitting, plan_orders
from kseg.export.read.order_reader import OrderReader
from kseg.export.settings import FileOptions, LogSelection, ReadOptions

orders = plan_orders(copies_of(find_replicas(sys.argv[1:])), LogSelection(), Splitting(FileOptions().target_size))
print(sum(batch.num_rows for order in orders for batch in OrderReader(order, ReadOptions()).batches()))
