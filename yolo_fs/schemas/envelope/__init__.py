"""The envelope in which product agents hand work to each other."""
