"""Sets a work tree up: `init`, the background service, `doctor`, cleanup."""
