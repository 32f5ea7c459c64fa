# The nodes of the host file, and commands on them.
# shellcheck shell=bash

# Sets `nodes` to those that mpirun reads in the host file.
read_hosts() {
  local LC_ALL=C text odd node
  [ -f "$hostfile" ] && [ -r "$hostfile" ] ||
    refuse "cannot read the host file '$hostfile'. Write one node per line: n1 slots=2"
  case $(tr -dc '\0\r' <"$hostfile" | head -c 1 | od -An -tx1) in
    *0d) refuse "'$hostfile' has Windows line endings, which mpirun does not accept. Convert it: sed -i 's/\\r\$//'" ;;
    *00) refuse "'$hostfile' has zero bytes, so it is not a text file. Write one node per line: n1 slots=2" ;;
  esac
  text=$(sed -E 's%(#|//).*%%; s/[[:blank:]]*=[[:blank:]]*/=/g' "$hostfile")
  odd=$(grep -oE 'slots=[^[:space:]]*' <<<"$text" | grep -vxE 'slots=[1-9][0-9]{0,4}' | head -1)
  [ -z "$odd" ] ||
    refuse "'$hostfile' has $(shown "$odd"), but slots must be a whole number from 1 to 99999. Write: n1 slots=2"
  odd=$(grep -oE '[[:blank:]]user=[^[:space:]]*' <<<"$text" | head -1)
  [ -z "$odd" ] ||
    refuse "'$hostfile' has $(shown "${odd:1}"), which mpirun does not support. Write: user@n1 slots=2"
  mapfile -t nodes < <(awk 'NF {
      node = $1
      for (i = 2; i <= NF; ++i) if ($i ~ /^user_?name=/) node = substr($i, index($i, "=") + 1) "@" $1
      if (!seen[node]++) print node
    }' <<<"$text")
  ((${#nodes[@]})) || refuse "'$hostfile' lists no node. Write one node per line: n1 slots=2"
  for node in "${nodes[@]}"; do
    [[ $node =~ ^([A-Za-z0-9_][A-Za-z0-9._-]*@)?[A-Za-z0-9][A-Za-z0-9._-]*$ ]] ||
      refuse "'$hostfile' lists $(shown "$node"), which is not a valid node name."
  done
}

# Sets `agent`, the command that reaches nodes, as mpirun does: the first installed one of several alternatives
# separated by colons.
find_agent() {
  local alternatives alternative
  IFS=: read -r -a alternatives <<<"$1"
  for alternative in ${alternatives[@]+"${alternatives[@]}"}; do
    read -r -a agent <<<"$alternative"
    ((${#agent[@]})) && type -P -- "${agent[0]}" >/dev/null && return
  done
  refuse "no program of $(shown "$1") is installed, so nodes cannot be reached. Set OMPI_MCA_plm_rsh_agent."
}

# mpirun does not use the agent for this node either.
is_this_node() { [[ $1 == localhost || $1 == 127.0.0.1 || $1 == "$HOSTNAME" ]]; }

# on NODE COMMAND...: passes the words literally, in quotes that every shell understands.
on() {
  local node=$1 words='' word reach=("${agent[@]}" "$1")
  for word in "${@:2}"; do words+="'${word//\'/\'\\\'\'}' "; done
  ! is_this_node "$node" || reach=(sh -c)
  ${limit[@]+"${limit[@]}"} "${reach[@]}" "$words"
}
