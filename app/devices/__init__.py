"""What hardware there is."""
