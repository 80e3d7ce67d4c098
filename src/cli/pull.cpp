// forerun pull: brings a model of a hub into the folder of models.
#include <cstdio>
#include <memory>
#include <string>

#include "cli/commands.h"
#include "cli/hub_model.h"
#include "text/printable.h"

namespace forerun {

void add_pull_command(CLI::App& app) {
  auto choice = std::make_shared<HubChoice>();
  CLI::App* command = app.add_subcommand("pull", "Download a model from a hub");
  command
      ->add_option("model", choice->model,
                   "ORG/REPO[:QUANT]; without QUANT Q4_K_M, else Q8_0, else the first GGUF file")
      ->required();
  command->add_option("--file", choice->file, "Which file of the repository");
  command->footer(
      "The hub is the one at HF_ENDPOINT, and HF_TOKEN is sent to it, if it is set. A download that "
      "was\n"
      "interrupted goes on where it was; checksums are those that the hub lists. Prints the file's "
      "path.\n"
      "Examples:\n"
      "  forerun pull org/model-GGUF:Q8_0\n"
      "  forerun run -hf org/model-GGUF:Q8_0 \"Why is the sky blue?\"");
  command->callback([choice] {
    const auto file = pull_showing_progress(hub_name_of(choice->model), choice->file);
    std::printf("%s\n", printable(file.string()).c_str());
  });
}

}  // namespace forerun
