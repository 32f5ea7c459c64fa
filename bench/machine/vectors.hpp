// Float vectors as wide as the registers of an instruction set.
#pragma once

namespace lockstep {

using Float4 = float __attribute__((vector_size(16)));
using ChannelVector = float __attribute__((vector_size(32)));
using Sixteen = float __attribute__((vector_size(64)));

}  // namespace lockstep
