// The MPI datatypes of the elements of messages.
#pragma once

#include <mpi.h>

#include <concepts>
#include <cstddef>
#include <cstdint>

namespace lockstep {

template <typename T>
concept MessageElement = std::same_as<T, float> || std::same_as<T, double> || std::same_as<T, std::int32_t> ||
    std::same_as<T, std::int64_t> || std::same_as<T, std::byte>;

struct ElementType {
  MPI_Datatype type;
  std::size_t size;
};

template <MessageElement T>
ElementType element_type() {
  if constexpr (std::same_as<T, float>) return {MPI_FLOAT, sizeof(T)};
  if constexpr (std::same_as<T, double>) return {MPI_DOUBLE, sizeof(T)};
  if constexpr (std::same_as<T, std::int32_t>) return {MPI_INT32_T, sizeof(T)};
  if constexpr (std::same_as<T, std::int64_t>) return {MPI_INT64_T, sizeof(T)};
  if constexpr (std::same_as<T, std::byte>) return {MPI_BYTE, sizeof(T)};
}

}  // namespace lockstep
