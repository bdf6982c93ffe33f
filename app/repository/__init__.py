"""What models exist on disk."""
