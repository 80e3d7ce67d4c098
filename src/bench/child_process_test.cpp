#include "bench/child_process.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <csignal>
#include <fstream>
#include <string>
#include <thread>

#include "core/error.h"

namespace forerun {
namespace {

using testing::HasSubstr;

// Whether a process runs; one that is over but not waited for does not.
bool runs(const std::string& process) {
  std::ifstream stat("/proc/" + process + "/stat");
  std::string text;
  std::getline(stat, text);
  const size_t name_end = text.rfind(')');
  return name_end != std::string::npos && text.size() > name_end + 2 && text[name_end + 2] != 'Z';
}

std::string first_line_of(const ChildProcess& process) {
  std::string output;
  while ((output = process.output()).find('\n') == std::string::npos) std::this_thread::yield();
  return output.substr(0, output.find('\n'));
}

TEST(ChildProcess, KeepsWhatIsPrinted) {
  ChildProcess process({"sh", "-c", "echo one; echo two >&2; echo; read x; echo \"<$x>\"; exit 3"});
  EXPECT_FALSE(process.wait());
  EXPECT_FALSE(process.is_running());
  EXPECT_EQ(process.output(), "one\ntwo\n\n<>\n");  // there is no input
  EXPECT_EQ(process.last_line(), "<>");
  EXPECT_EQ(process.end_words(), "ended with code 3");
  EXPECT_TRUE(ChildProcess({"true"}).wait());
  EXPECT_EQ(ChildProcess({"true"}).last_line(), "");
}

TEST(ChildProcess, SaysWhichSignalKilledIt) {
  ChildProcess process({"sh", "-c", "kill -ILL $$"});
  EXPECT_FALSE(process.wait());
  EXPECT_THAT(process.end_words(), HasSubstr("was killed by signal 4 ("));
}

TEST(ChildProcess, CannotStart) {
  try {
    ChildProcess process({"/nonexistent/program"});
    FAIL();
  } catch (const Error& error) {
    EXPECT_STREQ(error.what(), "cannot start /nonexistent/program: No such file or directory");
  }
}

TEST(ChildProcess, EndsWithTheObject) {
  std::string number;
  {
    ChildProcess process({"sh", "-c", "trap '' TERM INT HUP; echo $$; while :; do sleep 60; done"});
    number = first_line_of(process);
    EXPECT_TRUE(process.is_running());
    EXPECT_TRUE(runs(number));
  }
  EXPECT_FALSE(runs(number));
}

}  // namespace
}  // namespace forerun
