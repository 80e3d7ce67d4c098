// The architectures, one file each. architecture.cpp lists them.
#pragma once

#include <span>

namespace forerun {

class Architecture;

const Architecture& llama_architecture();
std::span<const Architecture* const> llama_by_other_names();
std::span<const Architecture* const> layer_norm_architectures();
std::span<const Architecture* const> mixture_architectures();
const Architecture& arcee_architecture();
std::span<const Architecture* const> cohere_architectures();
const Architecture& deepseek2_architecture();
const Architecture& exaone4_architecture();
const Architecture& gemma_architecture();
const Architecture& gemma2_architecture();
const Architecture& gemma3_architecture();
const Architecture& gemma4_architecture();
const Architecture& glm4_architecture();
const Architecture& gpt_oss_architecture();
std::span<const Architecture* const> granite_architectures();
const Architecture& hunyuan_architecture();
const Architecture& llama4_architecture();
const Architecture& maincoder_architecture();
const Architecture& minicpm_architecture();
const Architecture& mistral3_architecture();
const Architecture& olmo2_architecture();
const Architecture& phi3_architecture();
const Architecture& qwen3_architecture();
const Architecture& qwen3vl_architecture();
const Architecture& smollm3_architecture();

}  // namespace forerun
