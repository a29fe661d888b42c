"""What people and new sessions are shown: `status` and `resume`."""
