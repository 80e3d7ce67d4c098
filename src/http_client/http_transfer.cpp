#include "http_client/http_transfer.h"

#include <curl/curl.h>

#include <algorithm>
#include <array>
#include <cstdlib>
#include <exception>
#include <new>

#include "core/error.h"
#include "core/version.h"

namespace forerun {
namespace {

// Once for the program; what it makes lasts as long as that.
void start_curl() {
  static const CURLcode started = curl_global_init(CURL_GLOBAL_DEFAULT);
  if (started != CURLE_OK) fail(ErrorCode::kIo, "libcurl: {}", curl_easy_strerror(started));
}

bool is_this_machine(const std::string& host) {
  return host == "localhost" || host == "::1" || host.starts_with("127.");
}

}  // namespace

class HttpTransfer::Impl {
 public:
  Impl(const OutgoingRequest& request, std::function<void(std::string_view)> on_body)
      : on_body_(std::move(on_body)), json_(request.json.value_or("")) {
    start_curl();
    easy_.reset(curl_easy_init());
    if (!easy_) throw std::bad_alloc();
    address(request);
    trust(request);
    for (const auto& [name, value] : request.headers) headers_.add(name + ": " + value);
    if (request.json) {
      headers_.add("Content-Type: application/json");
      headers_.add("Expect:");  // an answer before the body is sent
      set(CURLOPT_POSTFIELDSIZE_LARGE, static_cast<curl_off_t>(json_.size()));
      set(CURLOPT_POSTFIELDS, json_.data());
    }
    set(CURLOPT_HTTPHEADER, headers_.first);
    set(CURLOPT_WRITEFUNCTION, &Impl::write);
    set(CURLOPT_WRITEDATA, this);
    set(CURLOPT_HEADERFUNCTION, &Impl::read_head);
    set(CURLOPT_HEADERDATA, this);
    set(CURLOPT_ERRORBUFFER, message_.data());
    set(CURLOPT_NOSIGNAL, 1L);
    // Counted in seconds: at least as long as asked for.
    const auto seconds = std::chrono::ceil<std::chrono::seconds>(request.timeout).count();
    set(CURLOPT_CONNECTTIMEOUT_MS, static_cast<long>(request.timeout.count()));
    set(CURLOPT_LOW_SPEED_LIMIT, 1L);
    set(CURLOPT_LOW_SPEED_TIME, static_cast<long>(seconds));
  }

  CURL* easy() const { return easy_.get(); }
  bool has_head() const { return has_head_; }
  End end() const { return end_; }

  int status() const {
    long status = 0;
    curl_easy_getinfo(easy(), CURLINFO_RESPONSE_CODE, &status);
    return static_cast<int>(status);
  }

  std::string header(const std::string& name) const {
    curl_header* found = nullptr;
    const bool is_there =
        curl_easy_header(easy(), name.c_str(), 0, CURLH_HEADER, -1, &found) == CURLHE_OK;
    return is_there ? found->value : "";
  }

  std::string why() const {
    return message_.front() != '\0' ? message_.data() : curl_easy_strerror(result_);
  }

  void finish(CURLcode result) {
    result_ = result;
    has_head_ = has_head_ || result == CURLE_OK;
    switch (result) {
      case CURLE_OK: end_ = End::kWhole; break;
      case CURLE_COULDNT_RESOLVE_HOST: end_ = End::kNoSuchHost; break;
      case CURLE_SSL_CONNECT_ERROR:
      case CURLE_SSL_CACERT_BADFILE:
      case CURLE_PEER_FAILED_VERIFICATION: end_ = End::kUntrusted; break;
      default: end_ = End::kLost;
    }
    if (thrown_) std::rethrow_exception(std::exchange(thrown_, nullptr));
  }

 private:
  // Lines of a request's head, as libcurl wants them.
  struct Headers {
    ~Headers() { curl_slist_free_all(first); }
    void add(const std::string& line) {
      curl_slist* longer = curl_slist_append(first, line.c_str());
      if (longer == nullptr) throw std::bad_alloc();
      first = longer;
    }
    curl_slist* first = nullptr;
  };

  struct Cleanup {
    void operator()(CURL* easy) const { curl_easy_cleanup(easy); }
  };

  template <typename Value>
  void set(CURLoption option, Value value) {
    const CURLcode result = curl_easy_setopt(easy(), option, value);
    if (result != CURLE_OK) fail(ErrorCode::kIo, "libcurl: {}", curl_easy_strerror(result));
  }

  void address(const OutgoingRequest& request) {
    set(CURLOPT_URL, request.url.text().c_str());
    set(CURLOPT_PATH_AS_IS, 1L);
    set(CURLOPT_PROTOCOLS_STR, "http,https");
    set(CURLOPT_HTTP_VERSION, static_cast<long>(CURL_HTTP_VERSION_1_1));
    set(CURLOPT_USERAGENT, fmt::format("forerun/{}", kVersionText).c_str());
    if (is_this_machine(request.url.host)) set(CURLOPT_NOPROXY, "*");
  }

  void trust(const OutgoingRequest& request) {
    set(CURLOPT_SSL_VERIFYPEER, request.verifies ? 1L : 0L);
    set(CURLOPT_SSL_VERIFYHOST, request.verifies ? 2L : 0L);
    // As other programs that use OpenSSL.
    if (const char* file = std::getenv("SSL_CERT_FILE")) set(CURLOPT_CAINFO, file);
    if (const char* folder = std::getenv("SSL_CERT_DIR")) set(CURLOPT_CAPATH, folder);
  }

  static size_t write(char* bytes, size_t, size_t n, void* self) {
    auto& transfer = *static_cast<Impl*>(self);
    try {
      transfer.on_body_({bytes, n});
      return n;
    } catch (...) {  // not through libcurl, which is C
      transfer.thrown_ = std::current_exception();
      return CURL_WRITEFUNC_ERROR;
    }
  }

  // Called for each line; an empty one ends the head. One of 100 is followed by another.
  static size_t read_head(char* line, size_t, size_t n, void* self) {
    auto& transfer = *static_cast<Impl*>(self);
    const std::string_view text(line, n);
    if (text == "\r\n" || text == "\n") transfer.has_head_ = transfer.status() >= 200;
    return n;
  }

  std::function<void(std::string_view)> on_body_;
  std::string json_;
  Headers headers_;
  std::array<char, CURL_ERROR_SIZE> message_{};
  std::unique_ptr<CURL, Cleanup> easy_;
  bool has_head_ = false;
  CURLcode result_ = CURLE_OK;
  End end_ = End::kNone;
  std::exception_ptr thrown_;
};

HttpTransfer::HttpTransfer(const OutgoingRequest& request, std::function<void(std::string_view)> on_body)
    : impl_(std::make_unique<Impl>(request, std::move(on_body))) {}

HttpTransfer::~HttpTransfer() = default;

bool HttpTransfer::has_head() const {
  return impl_->has_head();
}
int HttpTransfer::status() const {
  return impl_->status();
}
std::string HttpTransfer::header(const std::string& name) const {
  return impl_->header(name);
}
HttpTransfer::End HttpTransfer::end() const {
  return impl_->end();
}
std::string HttpTransfer::why() const {
  return impl_->why();
}

class HttpTransfers::Impl {
 public:
  Impl() {
    start_curl();
    multi_ = curl_multi_init();
    if (multi_ == nullptr) throw std::bad_alloc();
  }
  ~Impl() {
    for (HttpTransfer* transfer : running_) curl_multi_remove_handle(multi_, transfer->impl_->easy());
    curl_multi_cleanup(multi_);
  }
  Impl(const Impl&) = delete;
  Impl& operator=(const Impl&) = delete;

  void add(HttpTransfer& transfer) {
    check(curl_multi_add_handle(multi_, transfer.impl_->easy()));
    running_.push_back(&transfer);
  }

  std::vector<HttpTransfer*> run_for(std::chrono::milliseconds most) {
    int n_running = 0;
    check(curl_multi_poll(multi_, nullptr, 0, static_cast<int>(most.count()), nullptr));
    check(curl_multi_perform(multi_, &n_running));
    std::vector<HttpTransfer*> done;
    int n_left = 0;
    while (const CURLMsg* message = curl_multi_info_read(multi_, &n_left)) {
      if (message->msg != CURLMSG_DONE) continue;
      done.push_back(remove(message->easy_handle, message->data.result));
    }
    return done;
  }

 private:
  static void check(CURLMcode code) {
    if (code != CURLM_OK) fail(ErrorCode::kIo, "libcurl: {}", curl_multi_strerror(code));
  }

  HttpTransfer* remove(CURL* easy, CURLcode result) {
    const auto at = std::find_if(running_.begin(), running_.end(), [&](const HttpTransfer* transfer) {
      return transfer->impl_->easy() == easy;
    });
    HttpTransfer* transfer = *at;
    running_.erase(at);
    curl_multi_remove_handle(multi_, easy);
    transfer->impl_->finish(result);
    return transfer;
  }

  CURLM* multi_ = nullptr;
  std::vector<HttpTransfer*> running_;
};

HttpTransfers::HttpTransfers() : impl_(std::make_unique<Impl>()) {}

HttpTransfers::~HttpTransfers() = default;

void HttpTransfers::add(HttpTransfer& transfer) {
  impl_->add(transfer);
}

std::vector<HttpTransfer*> HttpTransfers::run_for(std::chrono::milliseconds most) {
  return impl_->run_for(most);
}

}  // namespace forerun
