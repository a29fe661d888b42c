"""A blocked Dev's question goes up to the user, and the decision down again: the story and its files."""
