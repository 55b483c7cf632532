"""The daemon of Spark's Python workers on this machine: workers are its forks, so they needn't import anything."""

from pyspark.daemon import manager

if __name__ == "__main__":
    import gc

    from kseg.arrow import leave_out_pandas

    leave_out_pandas()
    import pyspark.worker  # noqa: F401

    import kseg.spark.tasks  # noqa: F401

    gc.freeze()
    manager()
