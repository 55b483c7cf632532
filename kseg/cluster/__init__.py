"""The model of a cluster: directories, metadata, replicas, settings."""
