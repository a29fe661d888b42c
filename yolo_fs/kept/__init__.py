"""Contents that the branch does not have, in a private ref."""
