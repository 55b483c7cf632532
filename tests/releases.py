"""The newest releases of Kafka, for tests that run brokers and clients of these."""

from kseg import releases

NEWEST = str(releases.NEWEST)
LINE = releases.NEWEST.numbers[:2]
"""Major and minor number of the newest release."""
NEWEST_TWO = (str(releases.Release(max(each for each in releases.all_releases() if each[:2] < LINE))), NEWEST)
"""The last releases of the newest two lines, such as 4.3 and 4.4."""
