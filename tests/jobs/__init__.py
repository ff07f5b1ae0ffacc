"""Jobs through the broker, the streams query and the log."""
