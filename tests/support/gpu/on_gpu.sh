#!/usr/bin/env bash
# Runs what a test program has for a GPU, or skips where there is none: on_gpu.sh PROGRAM
set -euo pipefail
filter='*/cuda*-*/cuda_on_host*'
if [[ $("$1" --gtest_list_tests --gtest_filter="$filter") != *$'\n  '* ]]; then
  echo "skipped: no GPU here"
  exit 77
fi
exec "$1" --gtest_filter="$filter"
