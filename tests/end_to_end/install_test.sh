#!/usr/bin/env bash
# `cmake --install` makes a folder whose programs run and whose job scripts and module file name it:
# install_test.sh BUILD_FOLDER
set -euo pipefail
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
fail() { echo "failed: $*"; exit 1; }
prefix="$work/a prefix"
cd "$work"
cmake --install "$1" --prefix "a prefix" >"$work/words" || fail "$(<"$work/words")"

for program in make_shards train_cifar evaluate export_model inspect predict job_attempt; do
  "$prefix/bin/$program" --version | grep -q HDF5 || fail "the installed $program does not tell its libraries"
done

# Ranks that were started by it name it.
if ompi_info 2>/dev/null | grep -q 'MCA pmix: \(ext\|pmix\)'; then
  mpirun -n 1 "$prefix/bin/evaluate" --version | grep -q '^PMIx  *[^ ]' || fail "--version does not name PMIx"
fi

for program in make_shards train_cifar evaluate job_attempt; do
  [ -s "$prefix/share/man/man1/$program.1" ] || fail "$program has no manual page"
  [ -s "$prefix/share/bash-completion/completions/$program" ] || fail "$program has no completion"
done
for page in README.md apps/search.md tests/end_to_end/installed/count_up.cpp; do
  [ -s "$prefix/share/doc/lockstep/$page" ] || fail "a user of the prefix has no $page"
done
MANPATH=$prefix/share/man man -P cat train_cifar 2>/dev/null | grep -q -- '--model NAME' || ! command -v man >/dev/null ||
  fail "man does not show the page of train_cifar"

module=$(find "$prefix/share/modulefiles/lockstep" -type f)
for line in "prepend-path PATH \"$prefix/bin\"" "setenv LOCKSTEP_SLURM \"$prefix/share/lockstep/slurm\""; do
  grep -qxF "$line" "$module" || fail "no line '$line' in the module file: $(<"$module")"
done

scripts=$prefix/share/lockstep/slurm
for script in train_cifar.sbatch make_shards.sbatch evaluate.sbatch array.sbatch; do
  grep -q "^library='$scripts'" "$scripts/$script" || fail "$script does not name $scripts"
done
grep -qxF "built='$prefix/bin'" "$scripts/job.sh" || fail "the job scripts do not name $prefix/bin"
[ -x "$scripts/stop_job" ] && [ -x "$scripts/site_sbatch" ] || fail "the commands cannot be executed"
[ -r "$scripts/attempts.md" ] || fail "a user of the prefix has no page about attempts"
"$prefix/bin/submit_job" "$scripts/examples/cifar10-single-mul-DDP-gloo.yaml" --dry-run | grep -qxF "library='$scripts'" ||
  fail "the installed submit_job does not find the job scripts of its prefix"
echo "passed: $(find "$prefix" -type f | wc -l) files installed"
