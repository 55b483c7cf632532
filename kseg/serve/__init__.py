"""A read-only server of Kafka's protocol over log directories, for any Kafka client."""
