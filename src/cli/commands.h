// The commands of `forerun`. Each adds itself to the command line and runs when it
// was chosen; what it throws becomes one line on standard error.
#pragma once

#include <CLI/CLI.hpp>

namespace forerun {

void add_run_command(CLI::App& app);
void add_chat_command(CLI::App& app);
void add_serve_command(CLI::App& app);
void add_ps_command(CLI::App& app);
void add_models_command(CLI::App& app);
void add_pull_command(CLI::App& app);
void add_info_command(CLI::App& app);
void add_tokenize_command(CLI::App& app);
void add_datastore_command(CLI::App& app);
void add_layers_command(CLI::App& app);
void add_calibrate_command(CLI::App& app);
void add_domains_command(CLI::App& app);
void add_disco_command(CLI::App& app);
void add_bench_command(CLI::App& app);
void add_help_command(CLI::App& app);
// Below `layers`.
void add_layers_search_command(CLI::App& layers);
// Below `bench`.
void add_bench_retrieval_command(CLI::App& bench);
void add_bench_serve_command(CLI::App& bench);
void add_bench_spec_command(CLI::App& bench);
// Below `domains`.
void add_domains_build_command(CLI::App& domains);

// Below `disco`.
void add_disco_train_command(CLI::App& disco);

}  // namespace forerun
