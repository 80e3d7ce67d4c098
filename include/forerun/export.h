// What the shared library shows: whatever is not marked stays inside it.
#pragma once

#define FORERUN_API __attribute__((visibility("default")))
// A part that stays inside, of a class that is shown.
#define FORERUN_INTERNAL __attribute__((visibility("hidden")))
