#include "engine/hub_names.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace forerun {
namespace {

using testing::ElementsAre;

std::vector<std::string> chosen(const std::vector<std::string>& files, const std::string& quant) {
  const auto model = choose_model(hub_models(files), quant);
  return model ? model->files : std::vector<std::string>();
}

TEST(HubNames, AreReadAndRefused) {
  const auto plain = parse_hub_name("org/Some-Model_1.5-GGUF");
  ASSERT_TRUE(plain);
  EXPECT_EQ(plain->repo, "org/Some-Model_1.5-GGUF");
  EXPECT_EQ(plain->quant, "");
  const auto with_quant = parse_hub_name("org/model:q4_k_m");
  ASSERT_TRUE(with_quant);
  EXPECT_EQ(with_quant->repo, "org/model");
  EXPECT_EQ(with_quant->quant, "q4_k_m");
  for (const char* wrong : {"", "model", "/model", "org/", "org/model:", "a/b/c", "../model", "org/..",
                            ".org/model", "org/mod el", "org/model:a:b", "org/model:../x", "org\\a/b",
                            "-m/x", "https://host/org/model", "org/mo\ndel"}) {
    EXPECT_FALSE(parse_hub_name(wrong)) << wrong;
  }
}

TEST(HubNames, PathsThatLeadElsewhereAreNotSafe) {
  for (const char* fine : {"model.gguf", "Q4/model.gguf", "a..b.gguf", "...gguf", "a b/ü.gguf"}) {
    EXPECT_TRUE(is_safe_hub_path(fine)) << fine;
  }
  for (const char* wrong : {"", "/etc/x.gguf", "../x.gguf", "a/../x.gguf", "a//x.gguf", "./x.gguf",
                            "a/..", "a\\..\\x.gguf", "x\n.gguf", "x.gguf/", ".."}) {
    EXPECT_FALSE(is_safe_hub_path(wrong)) << wrong;
  }
  EXPECT_FALSE(is_safe_hub_path(std::string(300, 'x') + ".gguf"));
}

TEST(HubNames, TheQuantisationChoosesTheFile) {
  const std::vector<std::string> files = {
      "README.md",
      "imatrix.gguf",
      "mmproj-F16.gguf",
      "model-F16.gguf",
      "model-IQ4_XS.gguf",
      "model-Q4_K_M.gguf",
      "model-Q4_K_S.gguf",
      "model-Q8_0.gguf",
      "model-UD-Q4_K_M.gguf",
      "sub/other.q5_k_m.gguf",
  };
  EXPECT_THAT(chosen(files, ""), ElementsAre("model-Q4_K_M.gguf"));
  EXPECT_THAT(chosen(files, "q8_0"), ElementsAre("model-Q8_0.gguf"));
  EXPECT_THAT(chosen(files, "Q5_K_M"), ElementsAre("sub/other.q5_k_m.gguf"));
  EXPECT_THAT(chosen(files, "UD-Q4_K_M"), ElementsAre("model-UD-Q4_K_M.gguf"));
  EXPECT_THAT(chosen(files, "IQ4_XS"), ElementsAre("model-IQ4_XS.gguf"));
  EXPECT_THAT(chosen(files, "F16"), ElementsAre("model-F16.gguf"));
  for (const char* absent : {"Q4_K", "Q4_XS", "Q4", "Q2_K", "8_0"}) {
    EXPECT_THAT(chosen(files, absent), ElementsAre()) << absent;
  }
  EXPECT_THAT(chosen({"b-Q8_0.gguf", "a-F16.gguf"}, ""), ElementsAre("b-Q8_0.gguf"));
  EXPECT_THAT(chosen({"mmproj-a.gguf", "b-Q6_K.gguf", "a-F16.gguf"}, ""), ElementsAre("a-F16.gguf"));
  EXPECT_THAT(chosen({"../a-Q8_0.gguf", "README.md"}, ""), ElementsAre());
}

TEST(HubNames, PartsOfASplitModelAreOneModel) {
  const std::vector<std::string> files = {"Q8_0/m-Q8_0-00002-of-00002.gguf",
                                          "Q8_0/m-Q8_0-00001-of-00002.gguf",
                                          "m-Q2_K-00001-of-00003.gguf"};
  EXPECT_THAT(chosen(files, "Q8_0"),
              ElementsAre("Q8_0/m-Q8_0-00001-of-00002.gguf", "Q8_0/m-Q8_0-00002-of-00002.gguf"));
  EXPECT_TRUE(choose_model(hub_models(files), "Q8_0")->is_whole());
  EXPECT_FALSE(choose_model(hub_models(files), "Q2_K")->is_whole());
  EXPECT_FALSE(parse_split("m-00003-of-00002"));
  EXPECT_FALSE(parse_split("m-00000-of-00002"));
  EXPECT_FALSE(parse_split("m-1-of-2"));
}

TEST(HubNames, FilesSayWhatTheirWeightsAre) {
  EXPECT_EQ(quant_of("Qwen3-0.6B-Q4_K_M"), "Q4_K_M");
  EXPECT_EQ(quant_of("model_q8_0"), "Q8_0");
  EXPECT_EQ(quant_of("BF16/some.model"), "BF16");
  EXPECT_EQ(quant_of("m-iq2_xs"), "IQ2_XS");
  EXPECT_EQ(quant_of("stories260K"), "");
  EXPECT_EQ(quant_of("Qwen3"), "");
}

}  // namespace
}  // namespace forerun
