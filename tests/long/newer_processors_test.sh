#!/usr/bin/env bash
# Passes the tests of the CPU's kernels with wider vectors: newer_processors_test.sh SET ROOT BUILD_FOLDER
# The processor is emulated if this machine's lacks them. SET is avx512, or avx512_bf16, which Bochs emulates since
# version 3 (Debian 13). amx_bf16 is missing: Debian 13's Linux
# ends in a fault at its start where that Bochs shows it the tiles' saved state.
set -euo pipefail
here=$(dirname "${BASH_SOURCE[0]}")
source "$here/words.sh"
set=$1 root=$2 build=$3/cpu_only
tests=(product_loops_test conv_winograd_test deferred_norm_test norm_test ops_test layer_test matmul_test conv_direct_test)
case $set in
  avx512) processor=corei7_skylake_x flag=avx512vl ;;
  avx512_bf16) processor=sapphire_rapids flag=avx512_bf16 ;;
  *) fail "no instruction set '$set'" ;;
esac

# All of them: here they take seconds.
if grep -qw "$flag" /proc/cpuinfo; then
  for test in "${tests[@]}"; do
    "$3/bin/$test" --gtest_brief=1 --gtest_filter="*$set*" || fail "$test fails with $set"
  done
  echo "$set: ${#tests[@]} test programs pass on this processor"
  exit
fi

need bochs-bin bochs
[ -f /usr/share/bochs/BIOS-bochs-latest ] || skip "no BIOS for Bochs here (Debian package bochsbios)"
[ -f /usr/lib/ISOLINUX/isolinux.bin ] || skip "no boot loader here (Debian package isolinux)"
need genisoimage genisoimage
need busybox busybox
need cpio cpio
[ -n "$(apt-cache depends --important linux-image-cloud-amd64 2>/dev/null)" ] || skip "no kernel in apt's sources"
grep --quiet --line-regexp "$processor" <<<"$(bochs-bin --help cpu 2>&1 || true)" ||
  skip "this Bochs emulates no processor with $set ($processor)"

# Libraries of CUDA would not fit the emulated machine's memory.
{
  cmake --preset ci -S "$root" -B "$build" -DLOCKSTEP_CUDA=OFF -DLOCKSTEP_BENCH=OFF &&
    cmake --build "$build" --target "${tests[@]}"
} >"$build.log" 2>&1 || fail "the tests do not compile, see $build.log"

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
# Emulation is some hundred times slower than a processor: what takes longest on one stays out, so that it ends in a quarter
# of an hour.
slow='*many_channels*:*random*:*every_window*:*every_size*:*from_images*_bf16:*no_block*_bf16:*closes*_bf16'
cat >"$work/commands" <<COMMANDS
grep -qw $flag /proc/cpuinfo || exit 66
code=0
for test in ${tests[*]}; do
  "$build/bin/\$test" --gtest_brief=1 --gtest_color=no \
    --gtest_filter="*$set*-$slow" || { echo "\$test fails"; code=1; }
done
exit \$code
COMMANDS
code=0
"$here/emulated_machine.sh" "$work/machine" "$processor" 3000 "$work/commands" "${tests[@]/#/$build/bin/}" || code=$?
case $code in
  0) echo "$set: ${#tests[@]} test programs pass on an emulated $processor" ;;
  77) skip "no kernel to be had from apt's sources, its words are above" ;;
  66) fail "the emulated $processor has no $set" ;;
  124) fail "the emulated machine did not end within 50 minutes" ;;
  125) tail -5 "$work"/machine/{bochs.log,screen} && fail "the emulated machine broke, its last words are above" ;;
  *) fail "tests fail with $set, see above" ;;
esac
