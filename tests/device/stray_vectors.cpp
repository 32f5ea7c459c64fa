// A library that has what the test of instruction sets must find: AVX-512 outside a namespace of its own.
#include <vector>

inline void double_everything(std::vector<float>& values) {
  for (float& value : values) value *= 2;
}

float doubled_and_added(std::vector<float> values) {
  double_everything(values);
  float sum = 0;
  for (const float value : values) sum += value;
  return sum;
}
