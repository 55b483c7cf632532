"""Stands before the real isal on PYTHONPATH, so that kseg reads gzip by zlib."""

raise ImportError("hidden by the benchmark")
