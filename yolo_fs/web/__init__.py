"""The board in a browser: what the services know, shown, and the report of a phase."""
