"""A read-only server that speaks Kafka's protocol over log directories, for any client."""
