# Sourced by scripts/run and scripts/test: makes .venv in this checkout, with the locked versions, or finds it ready.
#
# Needs git and Python 3.11 or newer. Works with the bash 3.2 of macOS. Sets `root` and `python`.

root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd -P)
python="$root/.venv/bin/python"
stamp_file="$root/.venv/.yolo-fs-stamp"

complain() {
    printf '%s\n' "$@" >&2
    exit 1
}

# What the environment was made from; the path counts, for a virtual environment does not survive a move.
stamp() {
    "$python" -ISc '
import hashlib, sys
root = sys.argv[1]
digest = hashlib.sha256(f"{root}\n{sys.version}\n".encode())
for name in ("pyproject.toml", "requirements.lock"):
    digest.update(open(f"{root}/{name}", "rb").read())
print(digest.hexdigest())' "$root" 2>/dev/null
}

is_ready() {
    [ -f "$stamp_file" ] && [ -x "$python" ] && [ "$(cat "$stamp_file")" = "$(stamp)" ]
}

# A name may be a shim that does not work, so each candidate is asked.
find_python() {
    local candidate found_old='' found_bare=''
    set -- python3.14 python3.13 python3.12 python3.11 python3 python
    [ -z "${PYTHON-}" ] || set -- "$PYTHON"
    for candidate in "$@"; do
        command -v "$candidate" >/dev/null 2>&1 || continue
        "$candidate" -c '' >/dev/null 2>&1 || continue
        if ! "$candidate" -c 'import sys; sys.exit(sys.version_info < (3, 11))'; then
            found_old="$candidate"
        elif ! "$candidate" -c 'import ensurepip, venv' >/dev/null 2>&1; then
            found_bare="$candidate"
        else
            printf '%s\n' "$candidate"
            return
        fi
    done
    if [ -n "$found_bare" ]; then
        complain "yolo-fs: $found_bare has no venv module." \
            "Hint: Debian and Ubuntu keep it apart: sudo apt-get install python3-venv"
    fi
    if [ -n "$found_old" ]; then
        complain "yolo-fs: $found_old is $("$found_old" -V 2>&1), and 3.11 or newer is needed." \
            "Hint: install one, or name it: PYTHON=/path/to/python3.11 $0"
    fi
    complain "yolo-fs: no Python was found; 3.11 or newer is needed." \
        "Hint: install one, or name it: PYTHON=/path/to/python3.11 $0"
}

has_good_venv() {
    "$python" -c 'import sys, pip; sys.exit(sys.version_info < (3, 11) or sys.prefix != sys.argv[1])' \
        "$root/.venv" >/dev/null 2>&1
}

install() {
    "$python" -m pip --disable-pip-version-check --no-input install --quiet "$@"
}

set_up() {
    echo "yolo-fs: setting up .venv, this once" >&2
    if ! has_good_venv; then
        "$base" -m venv --clear "$root/.venv" || complain "yolo-fs: $base cannot make a virtual environment."
    fi
    rm -f "$stamp_file"
    install --requirement "$root/requirements.lock" || complain "yolo-fs: the locked versions cannot be installed."
    install --no-deps --no-build-isolation --editable "$root" || complain "yolo-fs: yolo-fs itself cannot be installed."
    stamp >"$stamp_file"
}

command -v git >/dev/null 2>&1 || complain "yolo-fs: git was not found." "Hint: install git 2.34 or newer."

if ! is_ready; then
    base=$(find_python) || exit 1
    # One at a time. The lock belongs to the open file 9, so it ends with this shell, whatever happens.
    exec 9<"$root/requirements.lock"
    "$base" -c 'import fcntl; fcntl.flock(9, fcntl.LOCK_EX)' || exit 1
    is_ready || set_up
    exec 9<&-
fi
