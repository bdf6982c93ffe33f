"""FastAPI routes; read, one plane call, write."""
