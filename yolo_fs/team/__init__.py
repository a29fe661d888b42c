"""One team in several work trees, clones and machines."""
