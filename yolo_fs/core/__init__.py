"""What everything else rests on: reasons, names, JSON, credentials, timestamps."""
