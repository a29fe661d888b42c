#!/bin/sh
# SessionStart hook: tells a new session where the team stands. A session never fails by it: always one object, always 0.
yolo_fs=$(dirname -- "$0")/../.venv/bin/yolo-fs
[ -x "$yolo_fs" ] || yolo_fs=$(command -v yolo-fs) || yolo_fs=
[ -n "$yolo_fs" ] || echo "session-start: yolo-fs is not installed" >&2
answer=$([ -n "$yolo_fs" ] && "$yolo_fs" resume --format claude-hook "$@") && [ -n "$answer" ] || answer='{}'
printf '%s\n' "$answer"
exit 0
