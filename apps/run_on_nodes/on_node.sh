# shellcheck shell=sh disable=SC2015,SC2016,SC2046,SC2086,SC3013
# Runs on a node, for one target: MAKE_SHARDS TARGET TOKEN CONTENT. It reads commands, one word per line, and answers
# each with a line and the line "end". It ends at the end of its input: once run_on_nodes has ended, nothing more happens
# on the node.
#
# CONTENT is empty for a data set. For another folder, it is the content hash of the source. A copy of such a folder has
# it in the file .lockstep-dispatch.
#
# TARGET.partial is the folder of an incomplete copy:
#   lockstep-dispatch  marks it as ours. The copying run holds its lock
#   data               the copy
#   old                the copy that it replaces, for a moment
#   TOKEN              of the run that copies
make_shards=$1 target=$2 token=$3 content=$4
partial=$2.partial
mark=$partial/lockstep-dispatch
copy_mark=.lockstep-dispatch
LC_ALL=C
export LC_ALL

answer() { printf '%s\n' "$*" || exit 1; }
exists() { [ -e "$1" ] || [ -L "$1" ]; }
# Runs COMMAND. If it fails, sets `reason` to the first line of its message.
try() { # COMMAND...
  reason=$("$@" 2>&1) && return
  reason=$(first_line "$reason")
  return 1
}
first_line() { printf '%s\n' "$1" | head -n 1; }

# Whether PATH holds a manifest, or each of its splits does.
has_manifests() {
  [ ! -f "$1/manifest.json" ] || return 0
  for split in train validation test; do
    ! exists "$1/$split" || [ -f "$1/$split/manifest.json" ] || return 1
  done
  exists "$1/train" || exists "$1/validation" || exists "$1/test"
}

# Prints the hash of all names, links, executable bits and bytes below PATH, except the mark of a copy. If it fails,
# prints why.
content_hash() { # PATH
  # Whatever fails writes a line to descriptor 3, which makes the text no hash.
  hash=$({
    cd "$1" && {
      {
        find . -mindepth 1 ! -path "./$copy_mark" \( -type f -perm -100 -printf 'x%p\0' -o \
          -type l -printf 'l%p//%l\0' -o -printf '%y%p\0' \) || echo failed >&3
      } | sort_or_fail
      { find . -type f ! -path "./$copy_mark" -print0 || echo failed >&3; } | sort_or_fail |
        { xargs -0 -r sha256sum -z || echo failed >&3; }
    } | sha256sum || echo failed
  } 3>&1)
  hash=${hash%  -}
  case $hash in '' | *[!0-9a-f]*) return 1 ;; *) echo "$hash" ;; esac
}
sort_or_fail() { sort -z || echo failed >&3; }
# Prints the hash in the mark of a copy that this user made. Prints nothing if PATH is no such copy.
marked_hash() { # PATH
  [ ! -L "$1" ] && [ -O "$1" ] && [ -f "$1/$copy_mark" ] && [ ! -L "$1/$copy_mark" ] &&
    head -c 100 "$1/$copy_mark" | sed -nE '1s/^lockstep-dispatch ([0-9a-f]{64})$/\1/p'
}

# Prints what PATH holds, in place of a data set: absent | foreign | whole HASHES | damaged REASON | unchecked REASON;
# in place of another folder: absent | foreign | whole CONTENT | ours | changed | unchecked REASON, where "ours" is an
# untouched copy of another CONTENT, and "changed" is a copy that was changed since.
state_of() { if [ -n "$content" ]; then state_of_files "$1"; else state_of_data "$1"; fi; }
state_of_files() {
  while exists "$1"; do
    [ -d "$1" ] || { answer foreign; return; }
    folder=$(inode "$1")
    if found=$(content_hash "$1" 2>&1); then
      found=$(printf '%s\n' "$found" | tail -n 1)
      [ "$found" != "$content" ] || { answer whole "$found"; return; }
      case $(marked_hash "$1") in "$found") answer ours ;; ?*) answer changed ;; *) answer foreign ;; esac
      return
    fi
    # Otherwise, another run has just replaced it.
    [ "$(inode "$1")" != "$folder" ] || { answer "unchecked $(first_line "$found")"; return; }
  done
  answer absent
}
inode() { stat -L -c '%d:%i' "$1" 2>/dev/null; }
state_of_data() {
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

# Moves PATH out of the way, and sets `aside` to its new name's number.
set_aside() {
  aside=1
  while exists "$1.set-aside-$aside"; do aside=$((aside + 1)); done
  try mv -T -- "$1" "$1.set-aside-$aside"
}
is_ours() { [ -d "$partial" ] && [ ! -L "$partial" ] && [ -O "$partial" ] && [ -f "$mark" ] && [ ! -L "$mark" ]; }

lock() { flock -n 9 || { answer busy; flock 9 || exit 1; }; }

# Locks TARGET.partial, and empties it: begun | moved NUMBER | failed REASON. "busy" comes first if another run copies.
begin() {
  moved='' tries=0 reason="'$partial' changes all the time"
  try mkdir -p -- "${target%/*}/" || { answer "failed $reason"; return; }
  until is_ours && { command exec 9>>"$mark"; } 2>/dev/null && lock && [ "$mark" -ef /proc/self/fd/9 ]; do
    tries=$((tries + 1))
    [ $tries -lt 100 ] || { rmdir -- "$partial" 2>/dev/null; answer "failed $reason"; return; }
    ! is_ours || continue
    # Runs create and remove it empty, and may be killed then. Another run may begin or end at this moment.
    if exists "$partial" && ! rmdir -- "$partial" 2>/dev/null && ! is_ours; then
      set_aside "$partial" || continue
      moved=$aside
    fi
    try mkdir -- "$partial" && try touch -- "$mark"
  done
  # That run was killed before its copy was at TARGET.
  exists "$target" || ! exists "$partial/old" || mv -T -- "$partial/old" "$target"
  try empty_partial && try mkdir -- "$partial/data" && try touch -- "$partial/$token" ||
    { answer "failed $reason"; return; }
  answer "${moved:+moved }${moved:-begun}"
}
# Removes all but the mark, which goes last.
empty_partial() { find "$partial/" -mindepth 1 -maxdepth 1 ! -name "${mark##*/}" -exec rm -rf -- {} +; }
give_up() { is_ours && empty_partial && rm -rf -- "$partial"; exec 9>&-; }

# Moves the copy to its final path: published | aside NUMBER | failed REASON
publish() {
  aside='' previous=''
  if move_previous && try mv -T -- "$partial/data" "$target"; then
    give_up
    answer "${aside:+aside }${aside:-published}"
    return
  fi
  [ -z "$previous" ] || mv -T -- "$previous" "$target"
  give_up
  answer "failed $reason"
}
# Moves what is at TARGET to `previous`.
move_previous() {
  if [ -n "$content" ]; then
    try sh -c 'echo "lockstep-dispatch $1" >"$2"' sh "$content" "$partial/data/$copy_mark" || return
  fi
  exists "$target" || return 0
  case ${content:+$(state_of "$target")} in
    ours) try mv -T -- "$target" "$partial/old" && previous=$partial/old ;;
    foreign | whole* | unchecked*) reason="'$target' was changed meanwhile"; return 1 ;;
    *) set_aside "$target" && previous=$target.set-aside-$aside ;;
  esac
}

while read -r command; do
  case $command in
    content) content_hash "$target" 2>&1 ;;
    look) state_of "$target" ;;
    identity)
      answer identity $(stat -L -c '%i:%Z' ${content:+"$target"} "$target"/manifest.json "$target"/*/manifest.json \
        2>/dev/null) ;;
    begin) begin ;;
    room) answer "room $(($(stat -f -c '%a * %S' "$partial")))" ;;
    check) state_of "$partial/data" ;;
    publish) publish ;;
    give_up) give_up ;;
  esac
  answer end
done
