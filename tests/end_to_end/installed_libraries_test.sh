#!/usr/bin/env bash
# `cmake --install` ships what a program of one's own needs: a project elsewhere finds the libraries, builds, and sums a
# tensor over two ranks. The custom training loop count_up survives interruptions, and search runs it as trials.
# installed_libraries_test.sh BUILD_FOLDER CXX_COMPILER
set -euo pipefail
export CMAKE_GENERATOR=Ninja  # which is there; make need not be
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
build=$(realpath "$1")
sources=$(realpath "$here/../..")
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
fail() { echo "failed: $*"; exit 1; }
prefix="$work/a prefix"
cmake --install "$build" --prefix "$prefix" >"$work/words" || fail "$(<"$work/words")"

# Headers include no header that stays behind.
cd "$prefix/include/lockstep"
grep -rhoP '^#include "\K[^"]+' . | sort -u >"$work/included"
(($(wc -l <"$work/included") > 50)) || fail "of the installed headers only $(wc -l <"$work/included") are included"
while read -r header; do
  [ -f "$header" ] || fail "an installed header includes '$header', which is not installed"
done <"$work/included"

package=$(dirname "$(find "$prefix" -name lockstepConfig.cmake)")
# From a path's beginning: sources in /lockstep are not what .../include/lockstep/ names.
if grep -rnP -e "(?<![\\w}])(\\Q$build\\E|\\Q$sources\\E)/" "$package"; then
  fail "the package names folders of the build, see above"
fi

cp -r "$here/installed" "$work/project"
cd "$work/project"
cmake -S . -B build -D CMAKE_PREFIX_PATH="$prefix" -D CMAKE_CXX_COMPILER="$2" >"$work/words" 2>&1 || fail "$(<"$work/words")"
cmake --build build >"$work/words" 2>&1 || fail "$(<"$work/words")"
words=$(mpirun --oversubscribe --bind-to none -n 2 build/sum_over_ranks)
[ "$words" = "sum over 2 ranks: 3" ] || fail "the program says '$words'"
words=$(python3 "$here/custom_loop_test.py" build/count_up "$prefix/bin/search") || fail "count_up: $words"

# What is missing is named, and a project that can do without is told that there is none.
configure() { cmake -S . -B without -D CMAKE_PREFIX_PATH="$prefix" -D CMAKE_CXX_COMPILER="$1" >"$work/words" 2>&1; }
sed -i 's/REQUIRED/QUIET/; /^add_executable/,$d' CMakeLists.txt
# shellcheck disable=SC2016
echo 'message(STATUS "found: ${lockstep_FOUND}")' >>CMakeLists.txt
PKG_CONFIG_LIBDIR=/nonexistent configure "$2" || fail "a package that is not needed ends the project: $(<"$work/words")"
grep -q 'found: 0' "$work/words" || fail "without its libraries the package is found: $(<"$work/words")"
sed -i 's/QUIET/REQUIRED/' CMakeLists.txt
PKG_CONFIG_LIBDIR=/nonexistent configure "$2" && fail "the package is found without its libraries"
grep -q "pkg-config does not find libexif" "$work/words" || fail "what is missing is not named: $(<"$work/words")"
sed -i 's/LANGUAGES C CXX/LANGUAGES CXX/' CMakeLists.txt
rm -r without
configure "$2" && fail "the package is found without C"
grep -q "the project does not enable C " "$work/words" || fail "what to try without C is not told: $(<"$work/words")"
echo "passed: programs of $(wc -l <sum_over_ranks.cpp) and $(wc -l <count_up.cpp) lines on the installed libraries"
