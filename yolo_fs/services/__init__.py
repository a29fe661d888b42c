"""How it runs: rules and edges put to work."""
