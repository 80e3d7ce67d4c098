#include "bench/serve/load.h"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <memory>
#include <nlohmann/json.hpp>
#include <random>
#include <unordered_map>

#include "core/error.h"
#include "core/stopwatch.h"
#include "http_client/http_transfer.h"

namespace forerun {
namespace {

using Clock = std::chrono::steady_clock;

// How long it may take until a server under full load begins to answer.
constexpr std::chrono::minutes kTimeout{10};

double percentile(std::vector<double> values, double p) {
  if (values.empty()) return 0;
  const auto index = static_cast<size_t>(p * static_cast<double>(values.size() - 1) + 0.5);
  std::nth_element(values.begin(), values.begin() + static_cast<std::ptrdiff_t>(index), values.end());
  return values[index];
}

// The events of a stream, as they come.
class EventReader {
 public:
  explicit EventReader(AnswerTimes& times) : times_(times) {}

  void add(std::string_view bytes) {
    left_ += bytes;
    for (size_t end = left_.find("\n\n"); end != std::string::npos; end = left_.find("\n\n")) {
      event(std::string_view(left_).substr(0, end));
      left_.erase(0, end + 2);
    }
  }

 private:
  void event(std::string_view lines) {
    static constexpr std::string_view kData = "data: ";
    const size_t at = lines.find(kData);
    if (at == std::string_view::npos || lines.substr(at + kData.size()) == "[DONE]") return;
    const nlohmann::json json =
        nlohmann::json::parse(lines.substr(at + kData.size()), nullptr, /*allow_exceptions=*/false);
    if (!json.is_object()) return;
    if (const auto usage = json.find("usage"); usage != json.end() && usage->is_object()) {
      times_.n_tokens = usage->value("completion_tokens", 0);
    }
    const std::string text = text_of(json);
    if (text.empty()) return;
    times_.text += text;
    const double now = watch_.seconds();
    if (times_.first_s == 0) {
      times_.first_s = now;
    } else {
      times_.gaps.push_back(now - last_);
    }
    last_ = now;
  }

  static std::string text_of(const nlohmann::json& json) {
    const auto choices = json.find("choices");
    if (choices == json.end() || choices->empty()) return "";
    const nlohmann::json& choice = choices->front();
    const auto delta = choice.find("delta");
    if (delta == choice.end()) return choice.value("text", "");
    const auto content = delta->find("content");
    return content != delta->end() && content->is_string() ? content->get<std::string>() : "";
  }

  AnswerTimes& times_;
  Stopwatch watch_;
  std::string left_;
  double last_ = 0;
};

// One request, from when it is sent.
class Question {
 public:
  Question(const OutgoingRequest& request, AnswerTimes& times)
      : times_(times),
        events_(times),
        transfer_(request, [this](std::string_view piece) { events_.add(piece); }) {}

  HttpTransfer& transfer() { return transfer_; }

  // Whether it was answered.
  bool finish() {
    times_.total_s = watch_.seconds();
    return transfer_.end() == HttpTransfer::End::kWhole && transfer_.status() == 200;
  }

 private:
  Stopwatch watch_;
  AnswerTimes& times_;
  EventReader events_;
  HttpTransfer transfer_;
};

class Load {
 public:
  explicit Load(const LoadOptions& options) : options_(options), random_(options.seed) {
    request_.url = parse_url(fmt::format("http://127.0.0.1:{}{}", options.port, options.path));
    request_.timeout = kTimeout;
    result_.answers.resize(options.bodies.size());
  }

  LoadResult run() {
    const Stopwatch watch;
    next_arrival_ = Clock::now();
    while (n_begun_ < options_.bodies.size() || !questions_.empty()) {
      begin_due();
      for (const HttpTransfer* transfer : transfers_.run_for(pause())) finish(transfer);
    }
    result_.seconds = watch.seconds();
    const bool has_none = result_.n_failed == static_cast<int>(options_.bodies.size());
    if (has_none) fail(ErrorCode::kIo, "the server on port {} answers nothing", options_.port);
    return std::move(result_);
  }

 private:
  bool is_due() const {
    if (n_begun_ == options_.bodies.size()) return false;
    if (options_.rate > 0) return Clock::now() >= next_arrival_;
    return static_cast<int>(questions_.size()) < options_.n_streams;
  }

  void begin_due() {
    for (; is_due(); ++n_begun_) {
      request_.json = options_.bodies[n_begun_];
      auto question = std::make_unique<Question>(request_, result_.answers[n_begun_]);
      transfers_.add(question->transfer());
      questions_.emplace(&question->transfer(), std::move(question));
      if (options_.rate > 0) {
        next_arrival_ += std::chrono::duration_cast<Clock::duration>(
            std::chrono::duration<double>(between_arrivals_(random_)));
      }
    }
  }

  // No longer than until the next request.
  std::chrono::milliseconds pause() const {
    constexpr std::chrono::milliseconds kMost{1000};
    if (options_.rate <= 0 || n_begun_ == options_.bodies.size()) return kMost;
    const auto left = std::chrono::ceil<std::chrono::milliseconds>(next_arrival_ - Clock::now());
    return std::clamp(left, std::chrono::milliseconds(0), kMost);
  }

  void finish(const HttpTransfer* transfer) {
    const auto question = questions_.find(transfer);
    if (!question->second->finish()) ++result_.n_failed;
    questions_.erase(question);
  }

  const LoadOptions& options_;
  OutgoingRequest request_;  // each with a body of its own
  std::mt19937_64 random_;
  std::exponential_distribution<double> between_arrivals_{options_.rate > 0 ? options_.rate : 1};
  Clock::time_point next_arrival_;
  size_t n_begun_ = 0;
  LoadResult result_;
  std::unordered_map<const HttpTransfer*, std::unique_ptr<Question>> questions_;  // under way
  HttpTransfers transfers_;
};

}  // namespace

double LoadResult::tokens_per_second() const {
  double n = 0;
  for (const AnswerTimes& answer : answers) n += answer.n_tokens;
  return n / seconds;
}

double LoadResult::first_s(double p) const {
  std::vector<double> all;
  for (const AnswerTimes& answer : answers) {
    if (answer.first_s > 0) all.push_back(answer.first_s);
  }
  return percentile(std::move(all), p);
}

double LoadResult::gap_s(double p) const {
  std::vector<double> all;
  for (const AnswerTimes& answer : answers)
    all.insert(all.end(), answer.gaps.begin(), answer.gaps.end());
  return percentile(std::move(all), p);
}

LoadResult run_load(const LoadOptions& options) {
  return Load(options).run();
}

}  // namespace forerun
