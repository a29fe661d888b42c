#!/bin/bash
# The status writer of a team that coordinates by shell: flock, jq, a temporary file and a rename; nothing is synced.
# Its contract is that of the reference script: eight keys in their order, `started_at` survives, everything else is
# what this call says. As lean as bash and jq allow: two processes of jq, one of date, one of flock, one of mv.
set -uo pipefail
dept="" dir="" status="" step="" error="" complete=0 total=0
while (($#)); do
  case "$1" in
    --dept) dept=$2 ;; --phase-dir) dir=$2 ;; --action) action=$2 ;; --status) status=$2 ;; --step) step=$2 ;;
    --error) error=$2 ;; --plans-complete) complete=$2 ;; --plans-total) total=$2 ;;
    *) echo "unknown flag: $1" >&2; exit 1 ;;
  esac
  shift 2
done
[[ -n $dept && -n $status && -n $step && ${action:-} == write && -d $dir ]] || { echo "usage" >&2; exit 1; }
file="$dir/.dept-status-$dept.json" temporary="$dir/.dept-status-$dept.json.tmp.$$"
exec 9>"$dir/.dept-lock-$dept"
flock -x -w 10 9 || { echo "lock timeout" >&2; exit 2; }
now=$(date -u +%Y-%m-%dT%H:%M:%SZ) started=""
[[ -f $file ]] && started=$(jq -r '.started_at // ""' "$file")
jq -n --arg dept "$dept" --arg status "$status" --arg step "$step" --arg started "${started:-$now}" --arg now "$now" \
  --argjson complete "$complete" --argjson total "$total" --arg error "$error" \
  '{dept: $dept, status: $status, step: $step, started_at: $started, updated_at: $now,
    plans_complete: $complete, plans_total: $total, error: $error}' >"$temporary" && mv "$temporary" "$file"
