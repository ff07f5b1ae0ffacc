"""Crashes: brokers and PostgreSQL killed without warning while messages flow."""
