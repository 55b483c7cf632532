"""Where Spark finds kseg's data source by itself."""

from kseg.spark.source import KsegSource


class DefaultSource(KsegSource):
    """The source as Spark finds it, without a session that it could set up."""

    was_registered = False


__all__ = ["DefaultSource"]
