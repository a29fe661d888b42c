"""yolo_fs: the coordinator for teams of coding agents that share one git repository."""

__version__ = "1.0.0"
