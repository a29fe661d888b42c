"""What is agreed: the tables of the protocol documents, in their order and their words."""
