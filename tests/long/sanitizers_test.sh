#!/usr/bin/env bash
# Builds TARGETS with AddressSanitizer, LeakSanitizer and UndefinedBehaviorSanitizer, and passes the tests with a label
# that matches LABELS and none that matches EXCLUDED. A finding ends the program that has it.
#
#   sanitizers_test.sh ROOT BUILD_FOLDER LABELS EXCLUDED TARGET...
set -euo pipefail
source "$(dirname "${BASH_SOURCE[0]}")/words.sh"
root=$1 build=$2/asan labels=$3 excluded=$4
shift 4
cmake --preset asan -S "$root" -B "$build"
cmake --build "$build" --target "$@"
# Where libraries have thread-local variables of their own, GCC 12's LeakSanitizer takes a wrong address for theirs and dies of it
# at the end of some programs: it leaves them out, and ours are all in programs' own thread-local memory, which it still reads.
# A damaged file makes HDF5 request a huge block. As outside of the sanitizers, malloc then returns a null pointer.
export ASAN_OPTIONS=strict_string_checks=1:detect_stack_use_after_return=1:intercept_tls_get_addr=0:allocator_may_return_null=1
export LSAN_OPTIONS=suppressions=$root/tests/support/lsan.supp:print_suppressions=0
export UBSAN_OPTIONS=halt_on_error=1:print_stacktrace=1
# AddressSanitizer ends a program that asks for too much memory before anything is thrown, and keeps what was freed, which a
# test of memory's growth counts, and must be the first library of a program, where a test loads one of its own;
# UndefinedBehaviorSanitizer's look at types wants open files, which a test takes away.
# ArenaTest and CudaCallsTest expect addresses and sizes without the guards that these builds put behind blocks.
export GTEST_FILTER=-ArenaTest.*:CudaCallsTest.a_step_is_not_repeated_with_other_memory_in_use
GTEST_FILTER+=:RunTest.want_of_memory_is_70:ParallelDeathTest.threads_that_the_system_refuses_are_named
GTEST_FILTER+=:NodeGreeting.a_node_gets_in_among_many_unauthenticated_peers
GTEST_FILTER+=:StartTest.mpi_that_does_not_start_ends_the_program_in_time
GTEST_FILTER+=:StartTest.mpi_that_cannot_find_other_ranks_ends_the_program_with_words
GTEST_FILTER+=:NodeLinkTest.a_node_that_does_not_find_rank_0_says_so_and_nobody_is_missed
# Nor do these fit: a test of memory's growth; tests of how long something takes, where mpirun waits a second and then kills, or
# chaos.py two minutes; a program of other people's, whose MPI unloads the modules that leaked; a test of compiled code.
not_here='^(checkpoint_memory_test.*|interrupt_test|grace_period_test|chaos_few|scale_test.*|installed_libraries_test'
not_here+='|instruction_sets_test)$'
ctest --test-dir "$build" --label-regex "$labels" --label-exclude "$excluded" --exclude-regex "$not_here" --parallel 6 --output-on-failure \
  --no-tests=error ||
  fail "tests fail under the sanitizers, see above"
