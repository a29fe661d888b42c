"""The company that runs: agents that are started, watched and never lost."""
