"""Loading, readiness, draining, unloading."""
