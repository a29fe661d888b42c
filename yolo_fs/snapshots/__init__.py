"""Views of a repository for people: the present, any past commit, and the timeline between."""
