"""The one door to git: the only importer of GitPython and the only runner of git commands."""
