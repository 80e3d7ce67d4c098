// Vectors of texts as clients want them: scaled, and as numbers or in base64.
#pragma once

#include <span>
#include <string>

#include "serve/protocol/json_fields.h"

namespace forerun {

// llama-server's `embd_normalize`: 2 makes the vector's length 1, another positive number p its p-norm;
// 0 makes its largest number 32760, and -1 leaves it as it is.
void normalize(std::span<float> vector, int norm);

// With no more digits than tell a float from its neighbours.
Json vector_json(std::span<const float> vector);
// The floats' bytes, least significant first.
std::string base64_of(std::span<const float> vector);

}  // namespace forerun
