// Runs GoogleTest in one process: running no test is a failure, skipping every test is code 77.
#include "support/chosen_source.hpp"
#include "support/verdict.hpp"

int main(int argc, char** argv) {
  testing::InitGoogleTest(&argc, argv);
  lockstep::test::choose_source(argc, argv);
  [[maybe_unused]] const int code = RUN_ALL_TESTS();
  return lockstep::test::exit_code(lockstep::test::local_verdict());
}
