"""How the coordinated files of several clones become one: reconcile, and merge by records."""
