#!/usr/bin/env bash
# Starts a training and kills it with SIGKILL once it has a checkpoint after step 0: kill_at_checkpoint.sh OUTPUT WORDS...
# Exit code: 0 if it was killed, 1 if it ended before.
set -euo pipefail
output=$1
shift
"$@" &
training=$!
while kill -0 "$training" 2>/dev/null; do
  if compgen -G "$output/checkpoints/step-*[1-9]*.h5" >/dev/null; then
    kill -KILL "$training" 2>/dev/null || break
    wait "$training" 2>/dev/null || true
    echo "killed at $(compgen -G "$output/checkpoints/step-*[1-9]*.h5" | tail -1)"
    exit 0
  fi
  sleep 0.01
done
echo "the training ended before it could be killed" >&2
exit 1
