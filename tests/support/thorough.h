// How much tests do that draw or search a lot: all of it in the optimised build, and less where
// sanitizers watch every step, which takes twenty times as long and says nothing more of chances. Such a
// file is one of both TESTS and STATISTICS.
#pragma once

namespace forerun::test {

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
inline constexpr bool kIsSanitized = true;
#elif defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer)
inline constexpr bool kIsSanitized = true;
#else
inline constexpr bool kIsSanitized = false;
#endif
#else
inline constexpr bool kIsSanitized = false;
#endif

template <typename T>
constexpr T thorough(T all, T sanitized) {
  return kIsSanitized ? sanitized : all;
}

}  // namespace forerun::test
