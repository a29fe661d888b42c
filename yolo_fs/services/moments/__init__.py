"""What a person looks at: the present, any moment of the past, and the way between, for one
repository.
"""
