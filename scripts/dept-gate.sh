#!/bin/sh
# The contract of dept-gate, kept by yolo-fs. See docs/scripts.md.
yolo_fs=$(dirname -- "$0")/../.venv/bin/yolo-fs
[ -x "$yolo_fs" ] || yolo_fs=$(command -v yolo-fs) || { echo "dept-gate: yolo-fs is not installed" >&2; exit 127; }
exec "$yolo_fs" compat dept-gate "$@"
