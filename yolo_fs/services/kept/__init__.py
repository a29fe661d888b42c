"""Contents that the branch does not have, kept safe in a private ref of the repository."""
