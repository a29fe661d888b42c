"""What a person looks at in a repository: the present, any past moment, and the way between."""
