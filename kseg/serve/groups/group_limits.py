"""What groups may take of the server's memory, and the times that brokers use by default."""

MOST_GROUPS = 1000
"""Groups that have members, or that committed to this server."""
MOST_MEMBERS = 250
"""Members of a group, those included that were only given an id."""
MOST_GROUP_BYTES = 16 << 20
"""Bytes of all groups: subscriptions, assignments, commits."""
MEMBER_BYTES, COMMIT_BYTES = 1024, 400
"""What a member and a commit take besides the bytes that clients chose."""
MOST_COMMIT_METADATA = 4096
"""Characters beside an offset. Source: offset.metadata.max.bytes."""
SHORTEST_SESSION_MS, LONGEST_SESSION_MS = 6_000, 1_800_000
"""Source: group.min.session.timeout.ms, group.max.session.timeout.ms."""
CONSUMER_SESSION_SECONDS = 45.0
"""Of members that use the consumer protocol. Source: group.consumer.session.timeout.ms."""
CONSUMER_HEARTBEAT_MS = 1000
"""What these members are told. A broker says 5000; here a rebalance is to be quick."""
FIRST_JOIN_SECONDS = 0.5
"""Until a new group's first generation begins, since more members may be starting; each that comes starts it again.

A broker's group.initial.rebalance.delay.ms is 3000. Without any kafka-python 3.0 leads a group before it knows a topic.
"""
GROUP_SECONDS = 0.25
"""Between two looks at whose time is over, while clients wait for others of their group."""
COMMITS_SECONDS = 5.0
"""Between two looks at whether a broker has written to __consumer_offsets meanwhile."""
