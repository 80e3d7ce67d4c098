#include "cli/chat/conversation.h"

#include <forerun/error.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <random>

namespace forerun {
namespace {

// A token per character, and two for each message.
int count(const std::vector<ChatMessage>& messages) {
  size_t n = 0;
  for (const ChatMessage& message : messages) n += message.content.size() + 2;
  return static_cast<int>(n);
}

std::string text(size_t n, char c = 'x') {
  return std::string(n, c);
}

std::vector<std::string> contents(const Conversation& conversation) {
  std::vector<std::string> all;
  for (const ChatMessage& message : conversation.messages()) all.push_back(message.content);
  return all;
}

TEST(Conversation, HasItsMessagesInOrder) {
  Conversation conversation("be brief");
  conversation.add({.user = "a", .assistant = "b"});
  const auto messages = conversation.messages("c");
  ASSERT_EQ(messages.size(), 4u);
  EXPECT_EQ(messages[0].role, "system");
  EXPECT_EQ(messages[1].role, "user");
  EXPECT_EQ(messages[2].role, "assistant");
  EXPECT_EQ(messages[3].role, "user");
  EXPECT_EQ(messages[3].content, "c");
  EXPECT_EQ(conversation.take_latest()->user, "a");
  EXPECT_FALSE(conversation.take_latest());
  EXPECT_EQ(Conversation("").messages("c").size(), 1u);
}

TEST(Conversation, ForgetsNothingWhileThereIsRoom) {
  Conversation conversation("");
  for (int i = 0; i < 4; ++i) conversation.add({.user = text(8), .assistant = text(8)});
  // 80 tokens, 12 more with the message.
  EXPECT_EQ(conversation.make_room(text(10), 123, -1, count), 0);  // 31 left: a quarter is 30
  EXPECT_EQ(conversation.make_room(text(10), 97, 5, count), 0);    // five left
  EXPECT_EQ(conversation.n_turns(), 4);
}

TEST(Conversation, ForgetsTheOldestTurnsDownToHalf) {
  Conversation conversation("sy");
  for (const char c : {'a', 'b', 'c', 'd'})
    conversation.add({.user = text(8, c), .assistant = text(8, c)});
  // 96 tokens with the message; three turns would be 76, two 56, one 36.
  EXPECT_EQ(conversation.make_room(text(10), 100, -1, count), 3);
  EXPECT_EQ(contents(conversation), (std::vector<std::string>{"sy", text(8, 'd'), text(8, 'd')}));
}

TEST(Conversation, ALongMessageForgetsNoMoreThanItMust) {
  Conversation conversation("");
  conversation.add({.user = text(20), .assistant = text(16)});
  conversation.add({.user = text(4), .assistant = text(4)});
  EXPECT_EQ(conversation.make_room(text(58), 100, -1, count), 1);  // alone it takes more than half
  EXPECT_EQ(conversation.n_turns(), 1);
}

TEST(Conversation, WhatNeverFitsIsAnErrorAndNothingIsForgotten) {
  Conversation conversation("sys");
  conversation.add({.user = "a", .assistant = "b"});
  try {
    conversation.make_room(text(93), 100, 10, count);
    FAIL();
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::kContextFull);
    EXPECT_NE(std::string(error.what()).find("takes 100 tokens"), std::string::npos) << error.what();
  }
  EXPECT_EQ(conversation.n_turns(), 1);
  EXPECT_EQ(conversation.make_room(text(92), 100, 10, count), 1);  // room for one token
}

TEST(Conversation, RoomIsLeftWheneverTheMessageAllowsIt) {
  std::mt19937 rng(1);
  for (int i = 0; i < 2'000; ++i) {
    Conversation conversation(text(rng() % 10));
    for (size_t n = rng() % 8; n > 0; --n) {
      conversation.add({.user = text(rng() % 40), .assistant = text(rng() % 40)});
    }
    const std::string user = text(rng() % 120);
    const int max_tokens = static_cast<int>(rng() % 60) - 1;
    const int n_turns = conversation.n_turns();
    const int most = 100 - (max_tokens < 0 ? 25 : std::min(max_tokens, 25));
    Conversation alone(conversation.system());
    if (count(alone.messages(user)) >= 100 && count(conversation.messages(user)) > most) {
      EXPECT_THROW(conversation.make_room(user, 100, max_tokens, count), Error);
      EXPECT_EQ(conversation.n_turns(), n_turns);
      continue;
    }
    const int n_forgotten = conversation.make_room(user, 100, max_tokens, count);
    EXPECT_EQ(conversation.n_turns(), n_turns - n_forgotten);
    if (conversation.n_turns() > 0) {
      EXPECT_LE(count(conversation.messages(user)), most);
    }
  }
}

class ConversationFile : public testing::Test {
 protected:
  ConversationFile()
      : path_(std::filesystem::temp_directory_path() /
              ("forerun_conversation_" + std::to_string(std::random_device{}()) + ".json")) {}
  ~ConversationFile() override { std::filesystem::remove(path_); }

  std::filesystem::path path_;
};

TEST_F(ConversationFile, IsReadAsItWasWritten) {
  Conversation conversation("sei kurz 🙂");
  conversation.add({.user = "one\n\"two\"", .assistant = ""});
  conversation.add({.user = "three", .assistant = "four\t"});
  conversation.save(path_);
  const Conversation loaded = Conversation::load(path_);
  EXPECT_EQ(loaded.system(), conversation.system());
  EXPECT_EQ(contents(loaded), contents(conversation));
  EXPECT_EQ(loaded.n_turns(), 2);
}

TEST_F(ConversationFile, WhatIsNoneIsRefused) {
  EXPECT_THROW(Conversation::load(path_), Error);
  for (const char* bad : {
           "",
           "[]",
           "{}",
           R"({"forerun_chat": 2, "system": "", "messages": []})",
           R"({"forerun_chat": 1, "messages": []})",
           R"({"forerun_chat": 1, "system": "", "messages": {}})",
           R"({"forerun_chat": 1, "system": "", "messages": [1, 2]})",
           R"({"forerun_chat": 1, "system": "", "messages": [{"role": "user", "content": "a"}]})",
           R"({"forerun_chat": 1, "system": "", "messages": [{"role": "assistant", "content": "a"},
                                                             {"role": "user", "content": "a"}]})",
           R"({"forerun_chat": 1, "system": "", "messages": [{"role": "user", "content": "a"},
                                                             {"role": "assistant", "content": 3}]})",
       }) {
    std::ofstream(path_) << bad;
    EXPECT_THROW(Conversation::load(path_), Error) << bad;
  }
}

}  // namespace
}  // namespace forerun
