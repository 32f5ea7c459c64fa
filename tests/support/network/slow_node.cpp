// A node that is slow to come to others: loaded before the libraries of a program (LD_PRELOAD), it holds every rank but
// rank 0 up for two seconds where that connects to a port which the system chose, as that for other nodes is.
#include <dlfcn.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cstdlib>
#include <string_view>

extern "C" int connect(int socket, const sockaddr* address, socklen_t length) {
  using Connect = int (*)(int, const sockaddr*, socklen_t);
  static const auto real = reinterpret_cast<Connect>(::dlsym(RTLD_NEXT, "connect"));
  constexpr int first_of_the_system = 32768;
  const char* const rank = std::getenv("OMPI_COMM_WORLD_RANK");
  const bool is_tcp = address->sa_family == AF_INET || address->sa_family == AF_INET6;
  // The port lies in the same place in both families.
  if (rank != nullptr && std::string_view(rank) != "0" && is_tcp &&
      ntohs(reinterpret_cast<const sockaddr_in*>(address)->sin_port) >= first_of_the_system) {
    ::sleep(2);
  }
  return real(socket, address, length);
}
