#include <clocale>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <filesystem>
#include <new>
#include <string>
#include <string_view>
#include <vector>

#include "cli/commands.h"
#include "cli/terminal/interrupt.h"
#include "cli/usage.h"
#include "core/error.h"
#include "core/version.h"
#include "gguf/ggml_log.h"
#include "text/printable.h"

namespace {

constexpr int kInterrupted = 130;  // as shells report Ctrl-C

// Whatever went wrong, one line.
int report(const std::string& message) {
  std::string line = message;
  for (char& c : line) {
    if (c == '\n' || c == '\r') c = ' ';
  }
  line = forerun::printable(line);
  std::fflush(stdout);
  std::fprintf(stderr, "forerun: %s\n", line.c_str());
  return 1;
}

// The exit code of a command that has printed what it has.
int finish(int code) {
  if (std::fflush(stdout) != 0 || std::ferror(stdout) != 0) return report("cannot write the output");
  return code;
}

// Names of options that llama.cpp has in a form that CLI11 cannot read: a dash and several letters.
std::vector<const char*> with_long_names(int argc, char** argv) {
  std::vector<const char*> words(argv, argv + argc);
  for (const char*& word : words) {
    const std::string_view text = word;
    if (text == "--") break;
    if (text == "-hf" || text == "-hfr") word = "--hf-repo";
    if (text == "-hff") word = "--hf-file";
  }
  return words;
}

}  // namespace

int main(int argc, char** argv) {
  std::setlocale(LC_CTYPE, "");
  // Where no language is set, text is UTF-8 all the same.
  if (MB_CUR_MAX == 1) std::setlocale(LC_CTYPE, "C.UTF-8");
  forerun::silence_ggml_log();
  // A file that may not grow any more is an error like others.
  std::signal(SIGXFSZ, SIG_IGN);
  CLI::App app{"forerun: faster answers from any GGUF language model, word for word the same"};
  app.name("forerun");
  app.require_subcommand(1);
  app.set_version_flag("--version", forerun::kVersionText);
  app.formatter(forerun::help_formatter());
  // Of a flag given twice the last counts; lists say so themselves.
  app.option_defaults()->multi_option_policy(CLI::MultiOptionPolicy::TakeLast);
  app.footer("Try:  forerun run \"Why is the sky blue?\"\n      forerun run --help");
  forerun::add_run_command(app);
  forerun::add_chat_command(app);
  forerun::add_serve_command(app);
  forerun::add_ps_command(app);
  forerun::add_models_command(app);
  forerun::add_pull_command(app);
  forerun::add_info_command(app);
  forerun::add_tokenize_command(app);
  forerun::add_datastore_command(app);
  forerun::add_layers_command(app);
  forerun::add_calibrate_command(app);
  forerun::add_domains_command(app);
  forerun::add_disco_command(app);
#ifdef FORERUN_BENCHMARKS
  forerun::add_bench_command(app);
#endif
  forerun::add_help_command(app);
  try {
    app.parse(argc, with_long_names(argc, argv).data());
    return finish(0);
  } catch (const forerun::Interrupted&) {
    return finish(kInterrupted);
  } catch (const CLI::Success& success) {  // --help, --version
    return app.exit(success);
  } catch (const CLI::ParseError& error) {
    return report(forerun::usage_error(app, error));
  } catch (const forerun::Error& error) {
    return report(error.what());
  } catch (const std::filesystem::filesystem_error& error) {
    return report("cannot use " + error.path1().string() + ": " + error.code().message());
  } catch (const std::bad_alloc&) {
    return report("out of memory (a smaller context: -c)");
  } catch (const std::exception& error) {
    return report(error.what());
  }
}
