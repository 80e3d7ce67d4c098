// The models that tests run on, by name.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

namespace forerun::test {

// The file of a model that `make models` fetches or makes ("smollm2", "tiny-llama"), or that the
// repository has ("smollm2-draft").
// Throws Error when it is not there, saying so.
std::filesystem::path model_file(const std::string& name);

// The names of all tiny models there are, sorted; split ones once. Throws Error when there
// are none, so that a test of all of them cannot pass without one.
std::vector<std::string> tiny_model_names();
// These, and of the real ones those that are not made of others.
std::vector<std::string> tiny_and_real_model_names();

}  // namespace forerun::test
