// Integers that mean different things have different types: a token is not a
// position, a row is not a cell. Mixing them up is this field's classic bug.
//
// Each is a plain 32-bit integer in memory. Make one with TokenId{5}; read it
// with to_int(id).
#pragma once

#include <forerun/token.h>

#include <cstdint>

namespace forerun {

enum class Position : int32_t {};    // place in a sequence, 0 for its first token
enum class SequenceId : int32_t {};  // a sequence of the KV cache
enum class NodeId : int32_t {};      // a scratch node of one sequence (model/kv_cells.h)

constexpr Position operator+(Position p, int32_t n) {
  return Position{to_int(p) + n};
}
constexpr Position operator-(Position p, int32_t n) {
  return Position{to_int(p) - n};
}

}  // namespace forerun
