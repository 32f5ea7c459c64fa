// Runs the tests of one source only, if the command line names it: `bin/dataset_tests shard_test`.
#pragma once

namespace lockstep::test {

// `arguments` are those that GoogleTest left. Negative patterns of --gtest_filter are still in effect. Ends the program
// with code 2 if the arguments are not one source, or if there are positive patterns, too.
void choose_source(int count, char** arguments);

}  // namespace lockstep::test
