"""Where our own files lie, and the settings in force."""
