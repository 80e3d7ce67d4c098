// forerun tokenize: a text's tokens.
#include <cstdio>
#include <iostream>
#include <iterator>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>
#include <vector>

#include "cli/commands.h"
#include "cli/hub_model.h"
#include "cli/output.h"
#include "engine/model_names.h"
#include "gguf/gguf_file.h"
#include "text/printable.h"
#include "text/utf8.h"
#include "text/vocabulary.h"

namespace forerun {
namespace {

struct TokenizeCommand {
  std::string model{kDefaultModel};
  HubChoice hub;
  CLI::Option* text_given = nullptr;
  std::string text;
  bool no_special = false;
  bool parse_special = false;
  bool json = false;
};

std::vector<int> numbers(std::string_view bytes) {
  return {reinterpret_cast<const unsigned char*>(bytes.data()),
          reinterpret_cast<const unsigned char*>(bytes.data()) + bytes.size()};
}

// In quotes, with what cannot be seen as \n, \t or bytes.
std::string in_quotes(std::string_view bytes) {
  std::string text = "\"";
  for (const char c : printable(bytes)) {
    if (c == '\n') {
      text += "\\n";
    } else if (c == '\t') {
      text += "\\t";
    } else if (c == '"') {
      text += "\\\"";
    } else {
      text += c;
    }
  }
  return text + "\"";
}

void tokenize(const TokenizeCommand& options) {
  const GgufFile file = GgufFile::open(resolve_model(chosen_model(options.model, options.hub)));
  const Vocabulary vocabulary = Vocabulary::load(file.metadata());
  const std::string text =
      options.text_given->count() > 0
          ? options.text
          : std::string(std::istreambuf_iterator<char>(std::cin), std::istreambuf_iterator<char>());
  const auto tokens = vocabulary.tokenize(
      text, {.add_special = !options.no_special, .parse_special = options.parse_special});
  nlohmann::ordered_json list = nlohmann::ordered_json::array();
  for (const TokenId token : tokens) {
    const std::string bytes = vocabulary.piece(token, ControlTokens::kRendered);
    if (options.json) {
      // JSON is UTF-8: a character that several tokens share shows as U+FFFD in each.
      Utf8Stream utf8;
      list.push_back({{"id", to_int(token)},
                      {"piece", utf8.push(bytes) + utf8.flush()},
                      {"bytes", numbers(bytes)}});
    } else {
      std::printf("%7d  %s\n", to_int(token), in_quotes(bytes).c_str());
    }
  }
  if (options.json) print_json({{"tokens", list}});
}

}  // namespace

void add_tokenize_command(CLI::App& app) {
  auto options = std::make_shared<TokenizeCommand>();
  CLI::App* command = app.add_subcommand("tokenize", "Show a text's tokens");
  CLI::Option* named =
      command->add_option("-m,--model", options->model, "Path of a GGUF file, or a name");
  add_hub_options(*command, options->hub, named->capture_default_str());
  options->text_given =
      command->add_option("-p,--prompt,text", options->text, "The text (default: standard input)");
  command->add_flag("--no-special", options->no_special,
                    "Leave out the tokens that begin or end a text");
  command->add_flag("--parse-special", options->parse_special,
                    "Read names of control tokens as those tokens");
  command->add_flag("--json", options->json, "Print one JSON object");
  command->callback([options] { tokenize(*options); });
}

}  // namespace forerun
