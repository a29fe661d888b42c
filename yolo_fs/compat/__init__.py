"""The drop-in scripts: one module for each contract of the reference's shell scripts."""
