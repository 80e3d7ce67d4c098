// forerun run: one prompt, one answer.
#include <unistd.h>

#include <cstdio>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <iterator>
#include <memory>
#include <string>

#include "cli/commands.h"
#include "cli/generation_options.h"
#include "cli/model_options.h"
#include "cli/output.h"
#include "cli/speculation_options.h"
#include "cli/terminal/interrupt.h"
#include "core/error.h"

namespace forerun {
namespace {

struct RunOptions {
  ModelOptions model;
  GenerationFlags generation;
  SpeculationFlags speculation;
  CLI::Option* prompt_given = nullptr;
  std::string prompt;
  std::string file;
  std::string system;
  std::string prompt_cache;
  bool raw = false;
  bool json = false;
};

std::string read_all(std::istream& stream) {
  return {std::istreambuf_iterator<char>(stream), std::istreambuf_iterator<char>()};
}

std::string read_prompt(const RunOptions& options) {
  if (options.prompt_given->count() > 0) {
    std::error_code ignored;
    if (options.prompt.ends_with(".gguf") && std::filesystem::is_regular_file(options.prompt, ignored)) {
      fail(ErrorCode::kInvalidArgument, "{} is a model, not a prompt: name it with -m", options.prompt);
    }
    return options.prompt;
  }
  if (!options.file.empty() && options.file != "-") {
    std::ifstream stream(options.file, std::ios::binary);
    std::error_code ignored;
    if (!stream || std::filesystem::is_directory(options.file, ignored)) {
      fail(ErrorCode::kNotFound, "cannot read the prompt from {}", options.file);
    }
    return read_all(stream);
  }
  if (options.file.empty() && ::isatty(STDIN_FILENO) != 0) {
    fail(
        ErrorCode::kInvalidArgument,
        "no prompt: forerun run \"Why is the sky blue?\", -f FILE, or pipe one in ('forerun chat' for a "
        "conversation)");
  }
  return read_all(std::cin);
}

std::vector<TokenId> prompt_tokens(const RunOptions& options, const Engine& engine,
                                   const std::string& prompt) {
  if (options.raw || !engine.tokenizer().has_chat_template()) {
    if (!options.system.empty()) {
      fail(ErrorCode::kInvalidArgument, "--system needs a chat template: {}",
           options.raw ? "leave out --raw" : "this model has none");
    }
    return engine.tokenizer().tokenize(prompt, {.parse_special = options.raw});
  }
  std::vector<ChatMessage> messages;
  if (!options.system.empty()) messages.push_back({.role = "system", .content = options.system});
  messages.push_back({.role = "user", .content = prompt});
  return engine.tokenizer().chat_prompt(messages);
}

// The answer is there, so what goes wrong is no error.
void keep_context(const Engine& engine, const std::string& path) {
  try {
    engine.save_context(path);
  } catch (const Error& error) {
    print_warning(fmt::format("{}; the next prompt begins anew", error.what()));
  }
}

void run(const RunOptions& options) {
  // Before anything is loaded.
  const GenerationOptions generation_opts = generation_options(options.generation);
  options.speculation.check();
  const std::string prompt = read_prompt(options);
  if (prompt.empty()) fail(ErrorCode::kInvalidArgument, "the prompt is empty");
  options.speculation.warn_of_unused();
  if (options.generation.n_logprobs >= 0 && !options.json) {
    print_warning("--logprobs shows nothing without --json");
  }
  Engine engine(engine_options(options.model, options.speculation.options()));
  const std::vector<TokenId> tokens = prompt_tokens(options, engine, prompt);

  std::error_code ignored;
  if (!options.prompt_cache.empty() && std::filesystem::exists(options.prompt_cache, ignored)) {
    engine.restore_context(options.prompt_cache);
  }
  const InterruptGuard interrupts;
  const Generation generation =
      engine.generate({.prompt = tokens,
                       .options = generation_opts,
                       .on_chunk = options.json ? std::function<void(const Chunk&)>() : print_chunk,
                       .is_cancelled = InterruptGuard::take});
  if (!options.json) {
    std::printf("\n");
    std::fflush(stdout);
  }
  if (!options.prompt_cache.empty()) keep_context(engine, options.prompt_cache);
  if (options.json) {
    print_json(generation_json(generation, tokens, engine));
  } else {
    std::fprintf(stderr, "\n%s\n", statistics_line(generation, engine).c_str());
  }
  if (generation.stop_reason == StopReason::kCancelled) throw Interrupted{};
}

}  // namespace

void add_run_command(CLI::App& app) {
  auto options = std::make_shared<RunOptions>();
  CLI::App* command = app.add_subcommand("run", "Answer one prompt");
  options->prompt_given = command->add_option("-p,--prompt,prompt", options->prompt, "The prompt");
  command
      ->add_option("-f,--file", options->file,
                   "Read the prompt from a file (-: standard input, the default)")
      ->excludes(options->prompt_given);
  command->add_option("--system", options->system, "A system message before the prompt");
  command->add_flag("--raw", options->raw,
                    "Continue the prompt as it is, without the model's chat template");
  command->add_option(
      "--prompt-cache", options->prompt_cache,
      "File that keeps what was computed, so that the next prompt beginning alike starts sooner");
  command->add_flag("--json", options->json, "Print one JSON object instead of text");
  add_model_options(*command, options->model);
  add_context_options(*command, options->model);
  add_placement_options(*command, options->model.placement);
  add_generation_options(*command, options->generation);
  add_speculation_options(*command, options->speculation);
  command->footer(
      "The answer goes to standard output, statistics to standard error.\n"
      "Examples:\n"
      "  forerun run \"Name three rivers.\"\n"
      "  cat report.txt | forerun run --system \"Summarise the text.\"\n"
      "  forerun run -m model.gguf --raw \"Once upon a time\" -n 64 --temp 0");
  command->callback([options] { run(*options); });
}

}  // namespace forerun
