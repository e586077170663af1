"""Shipped profiles: simulated captures of every supported release on a few GPUs and models, read without an engine."""
