// The rows of a norm in registers. Included inside a namespace per instruction set, after vectors.inl.

struct NormVectors {
  explicit NormVectors(const float* rows)
      : factor(load(rows + norm_factor * lanes)),
        offset(load(rows + norm_offset * lanes)),
        mean(load(rows + norm_mean * lanes)),
        x_factor(load(rows + norm_x_factor * lanes)),
        mean_dz(load(rows + norm_mean_dz * lanes)) {}

  // One function for forward and for the gate in backward: both round alike.
  Floats forward(Floats x) const { return x * factor + offset; }
  Floats backward(Floats x, Floats dz) const { return factor * ((dz - mean_dz) + (x - mean) * x_factor); }

  Floats factor, offset, mean, x_factor, mean_dz;
};
