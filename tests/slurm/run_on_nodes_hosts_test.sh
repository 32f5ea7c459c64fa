#!/usr/bin/env bash
# How run_on_nodes reads its host file, and reaches nodes:
#
#   run_on_nodes_hosts_test.sh BUILD_FOLDER [SCENARIO...]
# shellcheck disable=SC2059,SC2317
# shellcheck source-path=SCRIPTDIR source=run_on_nodes_support.sh
source "$(dirname "$0")/run_on_nodes_support.sh"

command -v ssh >/dev/null || skip "no ssh"
mkdir "$data"
echo text >"$data/file"
cat >"$work/bin/mpirun" <<SH
#!/bin/bash
[ "\$1" != --version ] || exec $real_mpirun --version
echo "mpirun: \$(sed 's/ *\$/ |/' "\$2" | tr '\n' ' ')\${OMPI_MCA_regx:-}"
[ ! -e "$work/bin/ssh" ] || echo "agent of mpirun: \$(LOCKSTEP_TEST=only \$OMPI_MCA_plm_rsh_agent n1 true)"
SH
# ssh, which states what the real one reads in its configuration, and runs the command on this machine.
ssh_is_a_stand_in() { # from now on
  local real
  real=$(PATH=${PATH#"$work/bin:"} command -v ssh)
  mkdir -p "$work/home/.ssh"
  cat >"$work/bin/ssh" <<SH
#!/bin/bash
read -r host user port key < <(unshare --mount bash -c \
  'mount --bind "\$1" ~root && cd / && shift && exec "\$@"' bash "$work/home" $real -G "\$@" | awk '
    { value[\$1] = value[\$1] " " substr(\$0, index(\$0, " ") + 1) }
    END { print value["hostname"], value["user"], value["port"], value["identityfile"] }')
[ -z "\${LOCKSTEP_TEST:-}" ] || { echo "\$host \$user \$port"; exit; }
echo "\$host \$user \$port \$key" >>"$work/asked"
[ "\$port" != 9999 ] || exit 255
exec sh -c "\${@: -1}"
SH
  chmod +x "$work/bin/ssh"
  agent_is "ssh : rsh"
  : >"$work/asked"
}
asks() { # HOST USER PORT
  grep -q "^$1 $2 $3 " "$work/asked" || fail "$2 at $1, port $3, was not asked: $(cat "$work/asked")"
}
refused() { # HOSTS SUBJECT
  printf "$1" >"$work/hosts"
  nodes 2
  says "$2"
}

reads_host_files_as_mpirun_does() {
  : >"$work/asked"
  printf '%s\n' 'root@n1 slots=1 # first' '// comment' $'\tn2  user_name = ann' 'n3 username=bob max_slots=2' \
    'n3 username=bob' >"$work/hosts"
  nodes 0
  [ "$(sort "$work/asked" | tr '\n' ' ')" = "ann@n2 bob@n3 root@n1 " ] || fail "asked: $(cat "$work/asked")"
  refused 'n\0001\n' "zero bytes"
  refused 'n1 user=root\n' "'user=root'"
  refused 'n1\001\n' "\$'n1\\001'"
  refused 'n1\002\n' "\$'n1\\002'"
  refused 'n1\377\n' "\$'n1\\377'"
  refused '\357\273\277n1\n' "\$'\\357\\273\\277n1'"
  refused '%%s@n1\n' "'%s@n1'"
  refused '\055oProxyCommand=x@n1\n' "'-oProxyCommand=x@n1'"
  refused 'ann@n1 username=bob\n' "'ann@bob'"
  refused 'n1\nann n2@n3 slots=1\n' "line 2 of '"
  refused 'ann @n1\n' "'@n1' after the node, which is not a setting. Write one node per line: user@n1:22"
  refused 'n1:0\n' "'n1:0'"
  refused 'n1:65536\n' "'n1:65536'"
  refused 'n1:\n' "'n1:'"
  refused '2001:db8::1\n' "'2001:db8::1'"
  refused '[n1]\n' "'[n1]'"
  refused 'n1\nann@n1\n' "lists n1 with different users or ports"
  refused 'n1:22\nn1:2222\n' "lists n1 with different users or ports"
  refused 'ann@localhost:2222\n' "'ann@localhost:2222'"
  refused '# nothing\n\n' "lists no node"
  refused 'HOSTS = ["ann@n1:2222",\n' "user@n1:22 slots=2"
}

# Ports and brackets were no names of nodes, and Windows line endings were refused.
reads_host_files_as_people_write_them() {
  ssh_is_a_stand_in
  printf '%s\r\n' '# of PaddlePaddle' '' 'ann@n1:2222' 'n2:2200 slots=2' 'n2:2200 slots=1' '[2001:db8::1]:022' \
    'bob@[::2] slots=1' 'plain' >"$work/hosts"
  nodes 0
  says "mpirun: ann@n1 | n2 slots=2 | n2 slots=1 | 2001:db8::1 | bob@::2 slots=1 | plain | naive"
  asks n1 ann 2222
  asks n2 root 2200
  asks 2001:db8::1 root 22
  asks ::2 bob 22
  asks plain root 22
  [ "$(wc -l <"$work/asked")" = 5 ] || fail "a node was asked twice: $(cat "$work/asked")"
  [ -z "$(ls -A "$work/tmp")" ] || fail "files are left behind"
}

# What the host file does not state is as in the user's configuration.
honours_the_users_configuration_of_ssh() {
  ssh_is_a_stand_in
  mkdir -p "$work/home/.ssh/config.d"
  printf '%s\n' 'Include config.d/*' 'Host n1' '  Port 7' '  User carl' '  IdentityFile "~/.ssh/key of n1"' 'Host *' \
    '  HostName %h.example.org' '  Port 9' >"$work/home/.ssh/config"
  printf '%s\n' 'Host n3' '  User dora' >"$work/home/.ssh/config.d/more"
  printf '%s\n' n1:2222 ann@n2 n3 eve@n4:22 >"$work/hosts"
  nodes 0
  asks n1.example.org carl 2222
  asks n2.example.org ann 9
  asks n3.example.org dora 9
  asks n4.example.org eve 22
  grep -q '^n1.*key of n1' "$work/asked" || fail "the key is not used: $(cat "$work/asked")"
  # mpirun's agent is the same.
  says "agent of mpirun: n1.example.org carl 2222"
  echo n1 >"$work/hosts"
  nodes 0
  asks n1.example.org carl 7
}

names_the_port_of_a_node_that_does_not_answer() {
  ssh_is_a_stand_in
  echo ann@n1:9999 >"$work/hosts"
  nodes 1 --dispatch "$data"
  says "ann@n1 does not answer (through 'ssh', port 9999)."
  says "ann@n1 cannot be reached by 'ssh', port 9999. "
}

refuses_ports_that_the_agent_would_not_use() {
  echo n1:2222 >"$work/hosts"
  nodes 2
  says "'$work/agent' (OMPI_MCA_plm_rsh_agent)"
  ssh_is_a_stand_in
  agent_is "ssh -F $work/config"
  nodes 2
  says "'ssh -F $work/config' (OMPI_MCA_plm_rsh_agent)"
}

reads_the_agent_as_mpirun_does() {
  agent_is "/nowhere/rsh -x : env  WORD='a   $work/agent"
  nodes 0
  agent_is "/nowhere/rsh:"
  nodes 2
  says "'/nowhere/rsh:'"
  says "OMPI_MCA_plm_rsh_agent"
}

# Without sshd a good run on localhost ended with a warning that the node did not answer.
reaches_this_node_without_the_agent() {
  agent_is false
  local address
  printf 'ann@localhost slots=1\n%s\n' "$HOSTNAME" >"$work/hosts"
  for address in $(hostname -I); do
    case $address in *:*) echo "bob@[$address]" ;; *) echo "bob@$address" ;; esac >>"$work/hosts"
  done
  nodes 0 --dispatch "$data"
  says "localhost already has '$data'"
  ! grep -qE 'reached|answer' "$work/out" || fail "it asks the agent"
}

run_scenarios
