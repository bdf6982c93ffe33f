"""The two doors: DataPlane and ControlPlane."""
