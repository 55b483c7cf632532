"""A cluster's state as a shell script of Kafka's tools: features, topics, settings, ACLs, quotas; secrets are named."""

from collections.abc import Iterator
from typing import NamedTuple

from kseg.control_characters import escaped_text
from kseg.log.partition.partition_choice import EVERY_PARTITION, PartitionChoice
from kseg.times import iso_time
from kseg.views.carry_over.acl_lines import acl_lines
from kseg.views.carry_over.setting_lines import config_lines, feature_lines, quota_lines, scram_template
from kseg.views.carry_over.tool_line import Target
from kseg.views.carry_over.topic_lines import topic_lines
from kseg.views.cluster import ClusterMetadata


class CarryOver(NamedTuple):
    """What a script is to carry over: which topics, which kind of rows alone (None: all), and to where.

    keeps_brokers: each replica on the broker with the same id, instead of as many replicas.
    """

    target: Target
    choice: PartitionChoice = EVERY_PARTITION
    kind: str | None = None
    keeps_brokers: bool = False


class Script(NamedTuple):
    """The lines of a script, comments too, and how many of them are commands; what it leaves out, in words."""

    lines: tuple[str, ...]
    command_count: int
    left_out: tuple[str, ...]


def carry_over_script(found: ClusterMetadata, wanted: CarryOver) -> Script:
    """The script that creates a cluster's state in another one."""
    left_out: list[str] = []
    parts = [(heading, [*lines]) for heading, lines in _parts(found, wanted, left_out)]
    written = [line for heading, lines in parts if lines for line in ("", f"# {heading}", *lines)]
    if wanted.kind in (None, "scram"):
        written += _new_passwords(found, wanted.target)
    named = ["", "# Left out:", *(f"#   {escaped_text(text)}" for text in left_out)] if left_out else []
    return Script((*_head(found), *written, *named), sum(len(lines) for _, lines in parts), tuple(left_out))


def _head(found: ClusterMetadata) -> Iterator[str]:
    yield "#!/bin/sh"
    moment = iso_time(found.timestamp)
    yield f"# A cluster's state at offset {found.offset} of its metadata{f', {moment}' if moment else ''}."
    yield "# Run it with `sh -e`, Kafka's bin directory in the PATH; it stops at the first line that fails."


def _parts(found: ClusterMetadata, wanted: CarryOver, left_out: list[str]) -> Iterator[tuple[str, Iterator[str]]]:
    target, leave_out = wanted.target, left_out.append
    open_configs = [each for each in found.configs if not each.is_secret]
    of_topics = [each for each in open_configs if each.resource_type == "topic"]
    others = [each for each in open_configs if each.resource_type != "topic"]
    topics = [topic for topic in found.topics if wanted.choice.takes_topic(topic.name)]

    def is_wanted(*kinds: str) -> bool:
        return wanted.kind is None or wanted.kind in kinds

    if is_wanted("features"):
        yield "Features: a line fails where the other cluster has a higher level", feature_lines(found.features, target)
    if is_wanted("topics", "partitions"):
        keeps_brokers = wanted.keeps_brokers
        lines = topic_lines(topics, of_topics, target, keeps_brokers=keeps_brokers, leave_out=leave_out)
        yield "Topics and their settings", lines
    if is_wanted("configs"):
        yield "Settings of brokers, groups and client metrics", config_lines(others, target, leave_out)
    if is_wanted("acls"):
        yield "ACLs", acl_lines(found.acls, target, leave_out)
    if is_wanted("quotas"):
        yield "Quotas", quota_lines(found.quotas, target, leave_out)
    left_out += _secrets(found, is_wanted("configs"), is_wanted("tokens"))


def _secrets(found: ClusterMetadata, has_configs: bool, has_tokens: bool) -> Iterator[str]:
    for config in found.configs:
        if has_configs and config.is_secret:
            yield f"{config.name} of {config.resource_type} {config.resource or '<default>'}: a secret"
    if has_tokens and found.tokens:
        yield f"{len(found.tokens)} delegation tokens: only brokers make them"


def _new_passwords(found: ClusterMetadata, target: Target) -> Iterator[str]:
    """Comments: the metadata have no passwords, only what checks them."""
    if found.scram:
        yield from ("", "# SCRAM credentials: passwords can't be read from them, so put new ones into these lines")
    for credential in found.scram:
        line = scram_template(credential, target)
        yield f"# {line}" if line else f"# {escaped_text(credential.user)}, {credential.mechanism}: can't be named"
