"""What the tests of a team begin with."""

from tests.team.work_trees import bare, begun, clones, new_clone, new_tree

__all__ = ["bare", "begun", "clones", "new_clone", "new_tree"]
