// Included before the sources of libllama's chat templates, which ask localtime() for the date on whatever
// thread renders one: here every thread has a result of its own.
#pragma once

#include <ctime>

namespace std {

inline tm* localtime_per_thread(const time_t* time) {
  thread_local tm result;
  return localtime_r(time, &result);
}

}  // namespace std

#define localtime localtime_per_thread
