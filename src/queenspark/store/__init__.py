"""The only package with SQL for PostgreSQL: schema, push, pop, ack, leases, seek, retention."""
