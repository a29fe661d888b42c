"""The definition of each agent of the company, generated from the tables."""
