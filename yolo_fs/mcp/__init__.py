"""A door for every agent's host: the Model Context Protocol on stdio."""
