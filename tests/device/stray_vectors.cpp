// A program that does what the test of instruction sets must find: AVX-512 outside a namespace of its own.
#include <cstddef>
#include <vector>

inline void double_everything(float* values, std::size_t count) {
  for (std::size_t i = 0; i < count; ++i) values[i] *= 2;
}

int main(int argc, char**) {
  std::vector<float> values(static_cast<std::size_t>(argc) * 1024, 1.0F);
  double_everything(values.data(), values.size());
  return values.back() == 2 ? 0 : 1;
}
