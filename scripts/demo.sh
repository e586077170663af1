#!/bin/sh
# The main job on a real engine: two versions of llama.cpp, four slots and nothing else set.
# What moved, what it costs, the pin; then the pin is tried, and the third capture proves it.
set -eu

OLD=llamacpp@2026.8.10229
NEW=llamacpp@2026.9.11063

rm -rf "$DEMO"
mkdir -p "$DEMO"

say() { printf '\n\033[1m$ %s\033[0m\n' "$*"; }
run() { say "engdiff $*"; "$ENGDIFF" "$@"; }
differs() { # exit code 1 means "it differs"; here that is the expected answer
    say "engdiff $*"
    "$ENGDIFF" "$@" && { echo "expected a difference and found none" >&2; exit 1; } || [ $? -eq 1 ]
}

cat <<EOF
The same command on two versions of llama.cpp. Each is a real server, started by engdiff
with the bundled tiny model and stopped again.
EOF

say "engdiff capture $OLD --model tiny -o $DEMO/old.json -- -np 4"
"$ENGDIFF" capture "$OLD" --model tiny -o "$DEMO/old.json" -- -np 4 >"$DEMO/old.txt"
say "engdiff capture $NEW --like $DEMO/old.json -o $DEMO/new.json"
"$ENGDIFF" capture "$NEW" --like "$DEMO/old.json" -o "$DEMO/new.json" >"$DEMO/new.txt"

differs diff "$DEMO/old.json" "$DEMO/new.json"

PIN=$("$ENGDIFF" diff "$DEMO/old.json" "$DEMO/new.json" --json | python3 -c '
import json, sys
pins = [f["pin"]["text"] for f in json.load(sys.stdin)["findings"] if f["key"] == "model.context_total"]
print(pins[0])')

printf '\nThe pin is %s. Trying it:\n' "$PIN"
say "engdiff capture $NEW --model tiny -o $DEMO/pinned.json -- -np 4 $PIN"
# shellcheck disable=SC2086 - a pin is one or more words
"$ENGDIFF" capture "$NEW" --model tiny -o "$DEMO/pinned.json" -- -np 4 $PIN >"$DEMO/pinned.txt"

kv() { "$ENGDIFF" show "$DEMO/$1.json" | grep "KV cache:"; }

printf '\n   old     %s\n   new     %s\n   pinned  %s\n' "$(kv old)" "$(kv new)" "$(kv pinned)"
if [ "$(kv old)" != "$(kv pinned)" ]; then
    echo "the pin does not hold" >&2
    exit 1
fi
printf '\nProved: with %s the new version has the old KV cache again. Captures are in %s/.\n' "$PIN" "$DEMO"
