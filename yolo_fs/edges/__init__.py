"""Where it touches: git, files, locks and events, one door each."""
