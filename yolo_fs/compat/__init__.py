"""The drop-in scripts: each contract of the reference's shell scripts, kept by one module."""
