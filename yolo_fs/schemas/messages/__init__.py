"""The messages of document 000, one module for each family."""
