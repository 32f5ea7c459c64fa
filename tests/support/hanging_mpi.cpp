// MPI that does not start: loaded before the libraries of a program (LD_PRELOAD), it holds the main thread for ever.
#include <unistd.h>

// NOLINTNEXTLINE(readability-identifier-naming): MPI's name
extern "C" int MPI_Init_thread(int* /*argc*/, char*** /*argv*/, int /*required*/, int* /*provided*/) {
  for (;;) ::pause();
}
