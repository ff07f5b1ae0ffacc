"""Files in and out of queues: `queenspark import` and `queenspark export`."""
