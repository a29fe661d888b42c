#!/bin/sh
# The drop-in scripts. Each of the other names in this folder that stands in docs/scripts.md is a link to this file,
# and keeps the contract of the reference's script of that name.
self=$0
while [ -h "$self" ]; do
    target=$(readlink "$self")
    case $target in
        compat.sh | */compat.sh) break ;;
        /*) self=$target ;;
        *) self=$(dirname -- "$self")/$target ;;
    esac
done
name=${self##*/}
name=${name%.sh}
yolo_fs=$(dirname -- "$self")/../.venv/bin/yolo-fs
[ -x "$yolo_fs" ] || yolo_fs=$(command -v yolo-fs) || { echo "$name: yolo-fs is not installed" >&2; exit 127; }
exec "$yolo_fs" compat "$name" "$@"
