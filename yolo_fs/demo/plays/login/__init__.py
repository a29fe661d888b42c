"""The play of one backend department that builds a JWT login."""
