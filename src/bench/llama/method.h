// llama-server's modes as methods of `bench spec`: plain decoding and its n-gram drafters.
#pragma once

#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>
#include <vector>

#include "bench/spec/method.h"

namespace forerun {

constexpr std::string_view kLlamaPrefix = "llama:";  // of the methods' names, before the mode
constexpr std::string_view kLlamaPlainMode = "plain";

// What all modes are run with, so that they compute the same as our methods.
struct LlamaMethodOptions {
  std::string program;
  std::string model;   // path of the file
  std::string device;  // as Engine::Hardware calls it
  int n_threads = 1;
  int n_context = 0;   // tokens of each request
  int n_parallel = 1;  // requests at once
  std::string kv_type = "f16";
  int wait_s = 300;  // how long it may take to load
  GenerationOptions generation;
};

// "plain" and the n-gram modes that the text of `llama-server --help` names.
std::vector<std::string> modes_in_help(std::string_view help);
// Those that are `wanted`, or all if that is empty; plain decoding is always among them,
// first. Throws Error: the program has no such mode.
std::vector<std::string> llama_modes(const std::string& program, const std::vector<std::string>& wanted);
// What `llama-server --version` says, in one line.
std::string llama_version(const std::string& program);

// The flags of a mode, and those of llama-server as a whole.
std::vector<std::string> mode_arguments(const std::string& mode);
std::vector<std::string> llama_arguments(const LlamaMethodOptions& options, const std::string& mode);

// A request of POST /completion, all but its prompt. Throws Error: an option that llama-server
// does not have.
nlohmann::json completion_request(const GenerationOptions& options);
// Its answer, with the times that llama-server measured. Throws Error: a field is missing.
SpecAnswer completion_answer(const nlohmann::json& answer);

// Starts the server and waits until it is ready. Throws Error.
std::unique_ptr<SpecMethod> make_llama_method(const LlamaMethodOptions& options,
                                              const std::string& mode);

}  // namespace forerun
