"""A product from the idea to the prototype: the agents of document 003 hand over to each other."""
