"""One module or package per framework."""
