#include "bench/serve/load.h"

#include <algorithm>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/detached.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <boost/asio/write.hpp>
#include <boost/beast/core/flat_buffer.hpp>
#include <boost/beast/http/parser.hpp>
#include <boost/beast/http/read.hpp>
#include <boost/beast/http/string_body.hpp>
#include <boost/beast/http/write.hpp>
#include <chrono>
#include <cmath>
#include <limits>
#include <nlohmann/json.hpp>
#include <random>

#include "core/error.h"
#include "core/stopwatch.h"

namespace forerun {
namespace {

namespace asio = boost::asio;
namespace http = boost::beast::http;
using asio::ip::tcp;

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

class Load {
 public:
  explicit Load(const LoadOptions& options) : options_(options) {
    result_.answers.resize(options.bodies.size());
  }

  LoadResult run() {
    const Stopwatch watch;
    if (options_.rate > 0) {
      asio::co_spawn(context_, arrivals(), asio::detached);
    } else {
      for (int i = 0; i < options_.n_streams; ++i) asio::co_spawn(context_, client(), asio::detached);
    }
    context_.run();
    result_.seconds = watch.seconds();
    const bool has_none = result_.n_failed == static_cast<int>(options_.bodies.size());
    if (has_none) fail(ErrorCode::kIo, "the server on port {} answers nothing", options_.port);
    return std::move(result_);
  }

 private:
  asio::awaitable<void> client() {
    while (n_begun_ < options_.bodies.size()) co_await ask(n_begun_++);
  }

  asio::awaitable<void> arrivals() {
    std::mt19937_64 random(options_.seed);
    std::exponential_distribution<double> pause(options_.rate);
    asio::steady_timer timer(context_);
    auto at = std::chrono::steady_clock::now();
    while (n_begun_ < options_.bodies.size()) {
      asio::co_spawn(context_, ask(n_begun_++), asio::detached);
      at += std::chrono::duration_cast<std::chrono::steady_clock::duration>(
          std::chrono::duration<double>(pause(random)));
      timer.expires_at(at);
      co_await timer.async_wait(asio::use_awaitable);
    }
  }

  asio::awaitable<void> ask(size_t index) {
    try {
      co_await ask_server(options_.bodies[index], result_.answers[index]);
    } catch (const std::exception&) {
      ++result_.n_failed;
    }
  }

  asio::awaitable<void> ask_server(const std::string& body, AnswerTimes& times) {
    const Stopwatch watch;
    EventReader events(times);
    tcp::socket socket(context_);
    co_await socket.async_connect(
        {asio::ip::address_v4::loopback(), static_cast<uint16_t>(options_.port)}, asio::use_awaitable);
    http::request<http::string_body> request(http::verb::post, options_.path, 11, body);
    request.set(http::field::host, "127.0.0.1");
    request.set(http::field::content_type, "application/json");
    request.prepare_payload();
    co_await http::async_write(socket, request, asio::use_awaitable);
    boost::beast::flat_buffer buffer;
    http::response_parser<http::string_body> parser;
    parser.body_limit(boost::none);
    co_await http::async_read_header(socket, buffer, parser, asio::use_awaitable);
    if (parser.get().result_int() != 200) throw std::runtime_error("refused");
    while (!parser.is_done()) {
      co_await http::async_read_some(socket, buffer, parser, asio::use_awaitable);
      events.add(parser.get().body());
      parser.get().body().clear();
    }
    times.total_s = watch.seconds();
  }

  const LoadOptions& options_;
  asio::io_context context_{1};
  size_t n_begun_ = 0;
  LoadResult result_;
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
