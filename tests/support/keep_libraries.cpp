// For builds with sanitizers: no library is unloaded. Open MPI unloads its modules at the end, and LeakSanitizer, which
// looks later, could then neither name nor suppress what they kept.
extern "C" int dlclose(void* /*handle*/) { return 0; }
