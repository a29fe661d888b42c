"""The texts in a repository's hooks: the marked section, and our script that it calls.

The script decides in a few milliseconds, with the shell and git alone, whether a hook concerns us,
and starts Python only then. See docs/dev/faults.md#f63.
"""

from __future__ import annotations

import shlex
from collections.abc import Sequence

from yolo_fs.artifacts.classify import PLANNING_ROOT
from yolo_fs.artifacts.handoff_names import HANDOFF_FOLDER
from yolo_fs.artifacts.naming import GITS_OWN
from yolo_fs.core.ids import TYPES
from yolo_fs.git.obstacles import COMMITTING, SECTION
from yolo_fs.protocol.hooks import ANNOUNCED_BY

BEGIN = f"# --- BEGIN {SECTION} ---"
END = f"# --- END {SECTION} ---"
MADE_BY_US = "# This file was made by yolo-fs and goes with the section."
PROBED = 77
"""Exit code of a hook that was only probed, so that the user's part does not run."""

HINTED = "yolo-fs/hinted"
"""File in the common git directory: when a person last got the hint on the subject grammar."""
REFUSED = 75
"""Exit code of our module for a refusal: any other is our own failure, and git goes on."""

_WITH_INPUT = ("pre-push", "post-rewrite")
"""Hooks that get input on stdin, which the user's part must receive as well."""

_CALL = """\
# Kept by 'yolo-fs hooks install', taken out by 'yolo-fs hooks uninstall'. What stands \
around it is yours.
yolo_fs_hook=$(git rev-parse --git-common-dir 2>/dev/null || :)/yolo-fs/git-hook
if [ -x "$yolo_fs_hook" ]; then
"""

_PLAIN = """\
	YOLO_FS_PARENT=$PPID "$yolo_fs_hook" @NAME@ "$@" || exit $?
fi
"""

_REPEATED = """\
	yolo_fs_input=$(cat)
	printf '%s\\n' "$yolo_fs_input" | "$yolo_fs_hook" @NAME@ "$@" || exit $?
	if [ -n "$yolo_fs_input" ]; then
		exec <<YOLO_FS_INPUT
$yolo_fs_input
YOLO_FS_INPUT
	else
		exec </dev/null
	fi
fi
"""


def section(name: str, *, made_by_us: bool) -> bytes:
    """Return the section of one hook."""
    made = f"{MADE_BY_US}\n" if made_by_us else ""
    rest = _REPEATED if name in _WITH_INPUT else _PLAIN
    return f"{BEGIN}\n{made}{_CALL}{rest.replace('@NAME@', name)}{END}\n".encode()


_SCRIPT = r"""#!/bin/sh
# What yolo-fs does in a git hook: git-hook NAME ARGUMENT...
# Written by 'yolo-fs hooks install'; a change is undone by the next one.
unset GIT_LITERAL_PATHSPECS GIT_GLOB_PATHSPECS GIT_NOGLOB_PATHSPECS GIT_ICASE_PATHSPECS
PATH=${PATH:+$PATH:}/usr/local/bin:/usr/bin:/bin
python=@PYTHON@
module=@MODULE@
name=$1

# Only a refusal ends this script with a failure: what breaks in here keeps nobody from committing.
ask() {
	if [ -x "$python" ] && [ -f "$module" ]; then
		"$python" -E -P "$module" "$@"
		[ $? -ne @REFUSED@ ]
	elif command -v yolo-fs >/dev/null 2>&1; then
		yolo-fs git-hook "$@"
		[ $? -ne 1 ]
	else
		echo "yolo-fs: $python is gone, so $name was not checked; 'yolo-fs hooks install' fixes" \
			"it" >&2
	fi
}

# Whether a subject is right beyond doubt; where there is doubt, Python decides.
is_sound() {
	case $1 in
	@GITS_OWN@) return 0 ;;
	esac
	type=${1%%(*}
	scope=${1#*(}
	text=${scope#*)}
	scope=${scope%%)*}
	case $type in
	@TYPES@) ;;
	*) return 1 ;;
	esac
	case $scope in
	'' | *'('*) return 1 ;;
	esac
	case $text in
	': '[![:space:]]*) return 0 ;;
	esac
	return 1
}

stages_ours() {
	! git diff --cached --quiet -- @OURS@
}

# Whether it may be an agent that commits: its host says so, or the name is one that an agent
# could have.
is_agent() {
	[ -n "${YOLO_FS_AGENT-}${YOLO_FS_ROLE-}@ANNOUNCED@" ] && return 0
	case ${GIT_AUTHOR_NAME-} in
	'' | *[!a-z0-9-]*) return 1 ;;
	esac
	return 0
}

# Whether a person has had the hint of today, and the team leaves people alone.
is_hinted() {
	is_agent && return 1
	own=${XDG_CONFIG_HOME:-${HOME-}/.config}/yolo-fs/config.json
	grep -qs hooks_hold_people @PLANNING@/config.json "$own" && return 1
	[ -n "$(find "$(git rev-parse --git-common-dir)/@HINTED@" -mtime -1 2>/dev/null)" ]
}

is_handed_over() {
	for file in @HANDOFFS@; do
		[ -f "$file" ] && return 0
	done
	return 1
}

# The git that waits for this hook: a hook manager may stand between.
find_git() {
	pid=$YOLO_FS_PARENT
	for _ in 1 2 3 4 5; do
		read -r stat </proc/"$pid"/stat || return
		name_of=${stat#*(}
		set -- ${stat##*) }
		case ${name_of%%)*} in
		git | git-*) echo "$pid ${20}"; return ;;
		esac
		pid=$2
	done
}

# Names the git that commits, so that the daemon waits for it.
mark() {
	[ -n "${YOLO_FS_PARENT-}" ] || return
	umask 077
	mkdir -p "$1" || return
	found=$(find_git 2>/dev/null)
	echo "${found:-$YOLO_FS_PARENT -}" >"$1/@COMMITTING@"
}

# Whether nothing of what is pushed is ours, and every subject is right: TIP THERE REMOTE.
is_foreign() {
	case $1 in
	*[!0]*) ;;
	*) return 0 ;;
	esac
	case $2 in
	*[!0]*) set -- "$1" "^$2" ;;
	*) set -- "$1" --not "--remotes=$3" ;;
	esac
	touched=$(git rev-list -1 "$@" -- @OURS@ 2>/dev/null) && [ -z "$touched" ] || return 1
	subjects=$(git log --format=%s "$@")
	[ -n "$subjects" ] || return 0
	while IFS= read -r subject; do
		is_sound "$subject" || return 1
	done <<END
$subjects
END
}

is_all_foreign() {
	remote=$1
	while read -r _ tip _ there; do
		is_foreign "$tip" "$there" "$remote" || return 1
	done
}

if [ -n "${YOLO_FS_PROBE-}" ]; then
	ask probe "$name"
	exit @PROBED@
fi
[ -d @PLANNING@ ] || exit 0
case $name in
pre-commit)
	mark "$(git rev-parse --git-path yolo-fs)"
	if stages_ours || is_agent || is_handed_over; then ask "$@"; fi
	;;
prepare-commit-msg)
	mark "${2%/*}/yolo-fs"
	who=${YOLO_FS_AGENT-}${YOLO_FS_ROLE-}
	if [ -n "$who" ] || { [ -z "${3-}" ] && stages_ours; }; then ask "$@"; fi
	;;
commit-msg)
	subject=
	while IFS= read -r line || [ -n "$line" ]; do
		case $line in
		'#'* | '') ;;
		*) subject=$line; break ;;
		esac
	done <"$2"
	is_sound "$subject" || is_hinted || ask "$@"
	;;
post-commit)
	rm -f "$(git rev-parse --git-path yolo-fs)/@COMMITTING@"
	if ! is_sound "$(git log -1 --format=%s)" && ! is_hinted; then
		ask "$@"
	elif ! git diff --quiet HEAD~1 HEAD -- @OURS@ 2>/dev/null; then
		ask "$@"
	fi
	;;
post-checkout)
	if [ "${4-}" = 1 ] && is_handed_over; then ask "$@"; fi
	;;
post-merge)
	if is_handed_over; then ask "$@"; fi
	;;
post-rewrite)
	input=$(cat)
	old=$(printf '%s\n' "$input" | cut -c1-7)
	if [ -n "$old" ] && grep -qsF -e "$old" @PLANNING@/phases/*/*.summary.jsonl; then
		printf '%s\n' "$input" | ask "$@"
	fi
	;;
pre-push)
	input=$(cat)
	if [ -n "$input" ] && ! printf '%s\n' "$input" | is_all_foreign "$2"; then
		printf '%s\n' "$input" | ask "$@"
	fi
	;;
esac
"""


def script(python: str, module: str, directive_roots: Sequence[str]) -> bytes:
    """Return the script for an interpreter, our module in it, and folders with handoffs."""
    ours = (PLANNING_ROOT, HANDOFF_FOLDER, ":(top,glob)**/HANDOFF.md")
    handoffs = [f"{PLANNING_ROOT}/HANDOFF.md", f"{PLANNING_ROOT}/phases/*/HANDOFF.md"]
    handoffs += [f"{root}/*/HANDOFF.md" for root in directive_roots]
    gaps = {
        "PYTHON": shlex.quote(python),
        "MODULE": shlex.quote(module),
        "GITS_OWN": " | ".join(f"{shlex.quote(text)}*" for text in GITS_OWN),
        "TYPES": " | ".join(TYPES),
        "OURS": " ".join(map(shlex.quote, ours)),
        "HANDOFFS": " ".join("*".join(map(_quoted, glob.split("*"))) for glob in handoffs),
        "PLANNING": PLANNING_ROOT,
        "COMMITTING": COMMITTING,
        "HINTED": HINTED,
        "ANNOUNCED": "".join(f"${{{name}-}}" for name in ANNOUNCED_BY),
        "REFUSED": str(REFUSED),
        "PROBED": str(PROBED),
    }
    text = _SCRIPT
    for gap, value in gaps.items():
        text = text.replace(f"@{gap}@", value)
    return text.encode("utf-8", "surrogateescape")


def _quoted(part: str) -> str:
    return shlex.quote(part) if part else ""
