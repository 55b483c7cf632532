"""A cluster's state as command lines of Kafka's tools, which make it anew in another cluster."""
