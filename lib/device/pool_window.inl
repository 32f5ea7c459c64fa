// Where the windows of a pooling lie. Included in namespace lockstep (pool_window.hpp) and in the namespace of each
// instruction set.

// The number of positions of a window that a mean counts, along a side of `size` pixels: those in the map, or with
// `counts_padding` also those in the padding, as in PyTorch.
LOCKSTEP_HOST_DEVICE inline std::int64_t counted_positions(const Pool2d& pool, bool counts_padding, std::int64_t window,
                                                           std::int64_t size) {
  const std::int64_t first = window * pool.stride - pool.padding;
  const std::int64_t end = first + pool.kernel;
  const std::int64_t size_counted = counts_padding ? size + pool.padding : size;
  return (end < size_counted ? end : size_counted) - (counts_padding || first > 0 ? first : 0);
}

// The windows over a position of the map, along one side: from the first to the last of `windows`. None: last < first.
LOCKSTEP_HOST_DEVICE inline std::int64_t first_window_over(const Pool2d& pool, std::int64_t position) {
  const std::int64_t reach = position + pool.padding - pool.kernel + 1;
  return reach <= 0 ? 0 : (reach + pool.stride - 1) / pool.stride;
}
LOCKSTEP_HOST_DEVICE inline std::int64_t last_window_over(const Pool2d& pool, std::int64_t position,
                                                          std::int64_t windows) {
  const std::int64_t last = (position + pool.padding) / pool.stride;
  return last < windows ? last : windows - 1;
}
