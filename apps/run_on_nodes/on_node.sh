# shellcheck shell=sh disable=SC2015,SC2046,SC2086,SC3013
# Runs on a node, for one target: MAKE_SHARDS TARGET TOKEN. It reads commands, one word per line, and answers each with
# a line and the line "end". It ends at the end of its input: once run_on_nodes has ended, nothing more happens on the
# node.
#
# TARGET.partial is the folder of an incomplete copy:
#   lockstep-dispatch  marks it as ours. The copying run holds its lock
#   data               the copy
#   TOKEN              of the run that copies
make_shards=$1 target=$2 token=$3
partial=$2.partial
mark=$partial/lockstep-dispatch
LC_ALL=C
export LC_ALL

answer() { printf '%s\n' "$*" || exit 1; }
exists() { [ -e "$1" ] || [ -L "$1" ]; }

# Whether PATH holds a manifest, or each of its splits does.
has_manifests() {
  [ ! -f "$1/manifest.json" ] || return 0
  for split in train validation test; do
    ! exists "$1/$split" || [ -f "$1/$split/manifest.json" ] || return 1
  done
  exists "$1/train" || exists "$1/validation" || exists "$1/test"
}

# Prints what PATH holds: absent | foreign | whole HASHES | damaged REASON | unchecked REASON
state_of() {
  [ -x "$make_shards" ] || { answer "unchecked '$make_shards' does not exist"; return; }
  exists "$1" || { answer absent; return; }
  [ -d "$1" ] || { answer foreign; return; }
  find "$1/." -maxdepth 2 >/dev/null || { answer "unchecked the folder cannot be listed"; return; }
  has_manifests "$1" || { answer foreign; return; }
  text=$("$make_shards" verify --root-hash "$1" 2>&1)
  code=$?
  hashes=$(printf '%s\n' "$text" | grep -xE '(\.|[a-z]+) [0-9a-f]{32}')
  reason=$(printf '%s\n' "$text" | grep -v '^-*$' | tail -n 1)
  case $code-$hashes in
    0-?*) answer whole $hashes ;;
    65-) answer "damaged $reason" ;;
    *) answer "unchecked $reason (code $code)" ;;
  esac
}

# Moves PATH out of the way, and sets `aside` to the number in its new name.
set_aside() {
  aside=1
  while exists "$1.set-aside-$aside"; do aside=$((aside + 1)); done
  mv -T -- "$1" "$1.set-aside-$aside"
}
is_ours() { [ -d "$partial" ] && [ ! -L "$partial" ] && [ -O "$partial" ] && [ -f "$mark" ] && [ ! -L "$mark" ]; }

lock() { flock -n 9 || { answer busy; flock 9 || exit 1; }; }

# Locks TARGET.partial, and empties it: begun | moved NUMBER | failed. "busy" comes first if another run copies.
begin() {
  moved='' tries=0
  mkdir -p -- "${target%/*}/" || { answer failed; return; }
  until is_ours && command exec 9>>"$mark" && lock && [ "$mark" -ef /proc/self/fd/9 ]; do
    tries=$((tries + 1))
    [ $tries -lt 100 ] || { answer failed; return; }
    ! is_ours || continue
    if exists "$partial"; then
      set_aside "$partial" || { answer failed; return; }
      moved=$aside
    fi
    # Created together with its mark, then moved into place. Another run may do the same at this moment.
    mkdir -- "$partial.$token" && touch -- "$partial.$token/${mark##*/}" || { answer failed; return; }
    mv -T -- "$partial.$token" "$partial" 2>/dev/null || rm -r -- "$partial.$token"
  done
  rm -rf -- "$partial/data"
  mkdir -- "$partial/data" && touch -- "$partial/$token" || { answer failed; return; }
  answer "${moved:+moved }${moved:-begun}"
}
give_up() { is_ours && rm -rf -- "$partial"; exec 9>&-; }

# Moves the copy to its final path: published | aside NUMBER | failed
publish() {
  aside=''
  if exists "$target"; then set_aside "$target" || { give_up; answer failed; return; }; fi
  if ! mv -T -- "$partial/data" "$target"; then
    [ -z "$aside" ] || mv -T -- "$target.set-aside-$aside" "$target"
    give_up
    answer failed
    return
  fi
  give_up
  answer "${aside:+aside }${aside:-published}"
}

while read -r command; do
  case $command in
    look) state_of "$target" ;;
    identity) answer identity $(stat -L -c '%i:%Z' "$target"/manifest.json "$target"/*/manifest.json 2>/dev/null) ;;
    begin) begin ;;
    room) answer "room $(($(stat -f -c '%a * %S' "$partial")))" ;;
    check) state_of "$partial/data" ;;
    publish) publish ;;
    give_up) give_up ;;
  esac
  answer end
done
