"""A client of running brokers: connections, versions of requests, leaders and coordinators."""
