"""The basis of everything else: reasons, names, JSON, credentials, timestamps."""
