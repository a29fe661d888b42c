"""What each agent of the company is told: a definition for each, generated from the tables."""
