"""Commands for those who work on yolo_fs itself. Nothing here is installed."""
