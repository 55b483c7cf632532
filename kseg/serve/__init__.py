"""Kafka's protocol over log directories, read-only: any client reads them as if a broker had them."""
