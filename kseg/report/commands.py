"""The command line with each verdict: it shows the same, or more of it."""

from kseg.report.gathered import Gathered, PartitionFacts, TopicFacts
from kseg.views.doctor.next_steps import command_line, path_word

_MOST_PATHS = 3


def line_of(known: Gathered, command: str, *words: str) -> str | None:
    """A command over all log directories; None if these are too many for a line."""
    paths = known.log_dirs
    return command_line([command, *map(path_word, paths), *words]) if len(paths) <= _MOST_PATHS else None


def topic_line(topic: TopicFacts, command: str, *words: str) -> str | None:
    """A command over a topic."""
    paths = list(dict.fromkeys(each.log_dir for each in topic.partitions))
    if len(paths) > _MOST_PATHS:
        return None
    return command_line([command, *map(path_word, paths), "--topic", topic.name, *words])


def partition_line(partition: PartitionFacts, command: str, *words: str) -> str:
    """A command over a partition."""
    return command_line([command, path_word(partition.path), *words])
