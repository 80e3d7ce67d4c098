// The architectures, one file each. architecture.cpp lists them.
#pragma once

namespace forerun {

class Architecture;

const Architecture& llama_architecture();
const Architecture& qwen2_architecture();
const Architecture& qwen3_architecture();
const Architecture& gemma3_architecture();

}  // namespace forerun
