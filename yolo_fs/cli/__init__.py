"""What people type: one verb per file."""
