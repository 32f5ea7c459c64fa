#!/usr/bin/env bash
# OpenPAI's example of independent tasks, with fifty of them: independent_tasks_test.sh BUILD
set -uo pipefail
build=$(readlink -f "$1")
# shellcheck source-path=SCRIPTDIR source=support.sh
source "$(dirname "$(readlink -f "${BASH_SOURCE[0]}")")/support.sh"
# shellcheck source-path=SCRIPTDIR source=instances.sh
source "$here/instances.sh"
independent_tasks 50
echo "passed"
