#!/usr/bin/env bash
# `cmake --install` makes a folder whose programs run and whose job script and module file name it:
# install_test.sh BUILD_FOLDER
set -euo pipefail
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
fail() { echo "failed: $*"; exit 1; }
prefix="$work/a prefix"
cd "$work"
cmake --install "$1" --prefix "a prefix" >"$work/words" || fail "$(<"$work/words")"

for program in make_shards train_cifar evaluate inspect; do
  "$prefix/bin/$program" --version | grep -q HDF5 || fail "the installed $program does not tell its libraries"
done

module=$(find "$prefix/share/modulefiles/lockstep" -type f)
for line in "prepend-path PATH \"$prefix/bin\"" "setenv LOCKSTEP_SLURM \"$prefix/share/lockstep/slurm\""; do
  grep -qxF "$line" "$module" || fail "no line '$line' in the module file: $(<"$module")"
done

script=$prefix/share/lockstep/slurm/train_cifar.sbatch
[ -x "$script" ] || fail "$script cannot be executed"
grep -qxF "programs=\${LOCKSTEP_BIN:-\"$prefix/bin\"}" "$script" || fail "the job script does not name $prefix/bin"
echo "passed: $(find "$prefix" -type f | wc -l) files installed"
