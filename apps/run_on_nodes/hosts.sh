# The nodes of the host file, and commands on them.
# shellcheck shell=bash disable=SC2154

example="Write one node per line: user@n1:22 slots=2 (user, port and slots may be missing)"

# Sets `nodes` to those that mpirun reads in the host file, `ports` to their ports, and `mpirun_hosts` to a host file
# without anything that mpirun does not read: ports, brackets of IPv6 addresses, and Windows line endings.
read_hosts() {
  local LC_ALL=C text odd entry rest number=0 lines=()
  local -A entries=()
  [ -f "$hostfile" ] && [ -r "$hostfile" ] || refuse "cannot read the host file '$hostfile'. $example"
  [ -z "$(tr -dc '\0' <"$hostfile" | head -c 1 | tr '\0' 0)" ] ||
    refuse "'$hostfile' has zero bytes, so it is not a text file. $example"
  text=$(sed -E 's/\r$//; s%(#|//).*%%; s/[[:blank:]]*=[[:blank:]]*/=/g' "$hostfile")
  odd=$(grep -oE 'slots=[^[:space:]]*' <<<"$text" | grep -vxE 'slots=[1-9][0-9]{0,4}' | head -1)
  [ -z "$odd" ] ||
    refuse "'$hostfile' has $(shown "$odd"), but slots must be a whole number from 1 to 99999. Write: n1 slots=2"
  odd=$(grep -oE '[[:blank:]]user=[^[:space:]]*' <<<"$text" | head -1)
  [ -z "$odd" ] ||
    refuse "'$hostfile' has $(shown "${odd:1}"), which mpirun does not support. Write: user@n1 slots=2"
  nodes=()
  declare -gA ports=()
  while read -r entry rest; do
    number=$((number + 1))
    [ -z "$entry" ] || add_host "$entry" "$rest"
  done <<<"$text"
  ((${#nodes[@]})) || refuse "'$hostfile' lists no node. $example"
  # Open MPI 4's default form of node lists has no IPv6 addresses.
  [[ $text != *[\[]* ]] || export OMPI_MCA_regx=${OMPI_MCA_regx:-naive}
  mpirun_hosts=$hostfile
  if [[ $text == *[\[:]* ]] || grep -q $'\r$' "$hostfile"; then
    mpirun_hosts=$temporary/hosts
    printf '%s\n' "${lines[@]}" >"$mpirun_hosts"
  fi
}
# Adds a line of the host file.
add_host() { # ENTRY WORDS
  local user host port node word others
  [[ $1 =~ ^(([A-Za-z0-9_][A-Za-z0-9._-]*)@)?(\[[0-9A-Fa-f:.]*:[0-9A-Fa-f:.]*\]|[A-Za-z0-9][A-Za-z0-9._-]*)(:([0-9]+))?$ ]] ||
    refuse "'$hostfile' lists $(shown "$1"), which is not a valid node name. $example"
  user=${BASH_REMATCH[2]} host=${BASH_REMATCH[3]} port=${BASH_REMATCH[5]}
  host=${host#[} host=${host%]}
  lines+=("${user:+$user@}$host $2")
  read -r -a others <<<"$2"
  for word in ${others[@]+"${others[@]}"}; do
    [[ $word == *=* ]] ||
      refuse "line $number of '$hostfile' has $(shown "$word") after the node, which is not a setting. $example"
    [[ ! $word =~ ^user_?name= ]] || user=${user:+$user@}${word#*=}
  done
  [[ ! $user =~ [^A-Za-z0-9._-]|^[.-] ]] || refuse "'$hostfile' has $(shown "$user"), which is not a valid user name."
  node=${user:+$user@}$host
  [ -n "${entries[$host]:-}" ] || nodes+=("$node")
  entries[$host]=${entries[$host]:-$node:$port}
  [ "${entries[$host]}" = "$node:$port" ] ||
    refuse "'$hostfile' lists $host with different users or ports. If these are different nodes, give each its own name" \
      "in ~/.ssh/config. If not, correct one of the lines."
  [ -n "$port" ] || return 0
  ((${#port} <= 5 && 10#$port >= 1 && 10#$port <= 65535)) ||
    refuse "'$hostfile' lists $(shown "$1"), but ports are numbers from 1 to 65535."
  [[ ! $host =~ ^(localhost|127\..*|::1)$ ]] ||
    refuse "'$hostfile' lists '$1', but mpirun starts programs on localhost itself, without a port. Write the name of" \
      "the node that the port leads to, as in ~/.ssh/config."
  ports[$host]=$((10#$port))
}

# Sets `agent`, the command that reaches nodes, as mpirun does: the first installed one of several alternatives
# separated by colons.
find_agent() {
  local alternatives alternative
  IFS=: read -r -a alternatives <<<"$1"
  for alternative in ${alternatives[@]+"${alternatives[@]}"}; do
    read -r -a agent <<<"$alternative"
    ((${#agent[@]})) && type -P -- "${agent[0]}" >/dev/null && { add_ports; return; }
  done
  refuse "no program of $(shown "$1") is installed, so nodes cannot be reached. Set OMPI_MCA_plm_rsh_agent."
}
# Prints the agent, and the port of NODE.
way_to() { # NODE
  local port=${ports[${1##*@}]:-} command=${agent[*]}
  echo "'${command%" -F $temporary/ssh_config"}'${port:+, port $port}"
}
# Lets the agent, also mpirun's, use the ports of the host file. All else is as in the user's configuration of ssh.
add_ports() {
  local host
  ((${#ports[@]})) || return 0
  [[ ${agent[0]##*/} == ssh && " ${agent[*]}" != *' -F'* ]] ||
    refuse "'$hostfile' has ports, which run_on_nodes does not add to '${agent[*]}' (OMPI_MCA_plm_rsh_agent)." \
      "Leave the ports out of the host file, and make that command use them."
  {
    for host in "${!ports[@]}"; do printf 'Host %s\n  Port %s\n' "$host" "${ports[$host]}"; done
    printf '%s\n' 'Match all' 'Include ~/.ssh/config' 'Include /etc/ssh/ssh_config'
  } >"$temporary/ssh_config"
  agent+=(-F "$temporary/ssh_config")
  # Nodes do not have that file: mpirun has to reach all of them from here.
  export OMPI_MCA_plm_rsh_agent=${agent[*]} OMPI_MCA_plm_rsh_no_tree_spawn=1
  export PRTE_MCA_plm_ssh_agent=${agent[*]} PRTE_MCA_plm_ssh_no_tree_spawn=1
}

# mpirun does not use the agent for this node either, whatever the user.
own_names=" localhost 127.0.0.1 ::1 $HOSTNAME $(hostname -I 2>/dev/null) "
is_this_node() { [[ $own_names == *" ${1##*@} "* ]]; }

# on NODE COMMAND...: passes the words literally, in quotes that every shell understands.
on() {
  local node=$1 words='' word reach=("${agent[@]}" "$1")
  for word in "${@:2}"; do words+="'${word//\'/\'\\\'\'}' "; done
  ! is_this_node "$node" || reach=(sh -c)
  ${limit[@]+"${limit[@]}"} "${reach[@]}" "$words"
}
