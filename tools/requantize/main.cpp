// forerun-requantize IN.gguf OUT.gguf TYPE [--keep-head]
#include <CLI/CLI.hpp>
#include <cstdio>
#include <exception>
#include <string>

#include "core/error.h"
#include "gguf/ggml_log.h"
#include "requantize.h"

int main(int argc, char** argv) {
  CLI::App app{"Stores the matrices of a GGUF model in another weight type."};
  std::string in;
  std::string out;
  std::string type;
  forerun::RequantizeOptions options;
  app.add_option("IN", in, "model to read (of a split model the first part)")->required();
  app.add_option("OUT", out, "file to write")->required();
  app.add_option("TYPE", type, "weight type, e.g. q8_0 or iq2_xxs")->required();
  app.add_flag("--keep-head", options.keep_head,
               "leave the token embedding and the output matrix as they are");
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    return app.exit(error);
  }

  try {
    forerun::silence_ggml_log();
    options.type = forerun::parse_weight_type(type);
    forerun::requantize(in, out, options);
  } catch (const std::bad_alloc&) {
    std::fprintf(stderr, "forerun: not enough memory for the largest tensor of %s\n", in.c_str());
    return 1;
  } catch (const std::exception& error) {
    std::fprintf(stderr, "forerun: %s\n", error.what());
    return 1;
  }
  return 0;
}
