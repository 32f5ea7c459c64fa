#!/usr/bin/env bash
# Programs write a manual page and a completion for bash that hold what --help does: program_pages_test.sh BIN
set -euo pipefail
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
fail() { echo "failed: $*"; exit 1; }

programs=(make_shards train_cifar train_imagenet train_recommendation evaluate export_model inspect predict report check_cluster
  job_status scaling_study plan search submit_job run_roles show_environment)
for program in "${programs[@]}"; do
  [ -x "$1/$program" ] || fail "$1/$program is not built"
  said=$("$1/$program" --write-pages "$work" 2>&1) || fail "$program writes no pages: $said"
  [ -z "$said" ] || fail "$program says '$said'"
  page=$work/man/$program.1
  if command -v groff >/dev/null; then
    groff -man -ww -Tutf8 -z "$page" 2>"$work/words" || fail "groff refuses the page of $program"
    [ ! -s "$work/words" ] || fail "the page of $program: $(<"$work/words")"
  fi
  while read -r option; do
    grep -qF -- "${option//-/\\-}" "$page" || fail "the page of $program does not name $option"
  done < <("$1/$program" --help-all | grep -oP '^  (-\w, )?\K--[\w-]+')
  examples=$("$1/$program" --help | sed -n '/^Examples:$/,$ s/^  //p')
  [ -n "$examples" ] || fail "--help of $program has no examples"
  [ "$(sed -n '/^\.SH EXAMPLES$/,/^\.fi$/p' "$page" | sed '1,2d; $d; s/\\-/-/g')" = "$examples" ] ||
    fail "the page of $program has other examples than --help"
  grep -qx '\.SH EXIT STATUS' "$page" || fail "the page of $program has no exit codes"
  long=$("$1/$program" --help-all | grep -E '.{81}') && fail "--help-all of $program has a long line: $long"
  ! "$1/$program" --help | grep -q write-pages || fail "--help of $program tells users of --write-pages"
done
grep -qF '(auto, cpu, cuda; default: auto).' "$work/man/train_cifar.1" || fail "no values on the page of train_cifar"
grep -qx '\.SS Precision and device' "$work/man/train_cifar.1" || fail "no groups on the page of train_cifar"
grep -qF '\fBRUN_FOLDER...\fR' "$work/man/report.1" || fail "the page of report does not say that it takes several folders"

# refused COMMAND...: with code 2 and the name of the option
refused() {
  local code=0 said
  said=$("$@" 2>&1) || code=$?
  [[ $code = 2 && $said == *--write-pages* ]] || fail "'$*' ends with $code, saying '$said'"
}
touch "$work/file"
refused "$1/plan" --write-pages
refused "$1/plan" --write-pages ''
refused "$1/plan" --write-pages "$work/file"
refused "$1/plan" --write-pages /proc/nowhere
refused "$1/plan" --write-pages "$work/new" more

# complete WORDS...: what bash would offer for the last of them.
complete_words() {
  # shellcheck disable=SC1090
  . "$work/completions/$1"
  COMP_WORDS=("$@")
  COMP_CWORD=$(($# - 1))
  COMPREPLY=()
  "_lockstep_$1"
  printf '%s\n' "${COMPREPLY[@]}" | sort | paste -sd ' '
}
expect() {
  local wanted=$1 found
  shift
  found=$(complete_words "$@")
  [ "$found" = "$wanted" ] || fail "'$*' is completed by '$found', not '$wanted'"
}
mkdir "$work/data" "$work/date" && touch "$work/dated"
expect '--model --momentum' train_cifar --mo
expect 'resized-crop resized-crop-flip' train_cifar --data x --augment resized
expect 'sgd' train_cifar --optimizer = s
expect "$work/data $work/date" train_cifar --data "$work/dat"
expect '' train_cifar --epochs ''
expect 'resnet101 resnet18' train_cifar --model resnet1
expect 'resnet101 resnet18' evaluate --model = resnet1
expect 'rn18-ffcv-16' inspect --recipe rn18-ffcv-1
expect 'model monitoring' train_cifar --help mo
expect 'idx images' make_shards --help i
touch "$work/auto.h5"
(cd "$work" && expect 'auto auto.h5' train_cifar --resume au)
expect 'one-class' make_shards images --allow one
expect 'cifar10 cifar100' make_shards cif
expect '--samples --samples-per-shard' make_shards synthetic --samp
expect '' make_shards verify --samp
# shellcheck disable=SC1091
registered=$(. "$work/completions/evaluate" && complete -p evaluate)
[[ $registered == *_lockstep_evaluate* ]] || fail "the completion of evaluate is not registered: $registered"
echo "passed: ${#programs[@]} programs"
