"""Carving: batches of deleted logs found in raw disks, joined by proof, and written as partitions."""
