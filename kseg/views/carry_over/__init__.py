"""A cluster's state as command lines of Kafka's tools, which create it in another cluster."""
