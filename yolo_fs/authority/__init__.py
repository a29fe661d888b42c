"""Who may decide, use, send, read and write what, and whom to ask instead. Pure."""
