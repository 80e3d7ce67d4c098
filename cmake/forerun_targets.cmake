# How our own targets are made: one library per folder under src/, named
# forerun_<folder>, with its unit tests beside the code they test.

find_package(Threads REQUIRED)
find_package(nlohmann_json REQUIRED)
if(FORERUN_PROGRAM)
  find_package(CLI11 REQUIRED)
endif()

# The shared library shows what is marked with FORERUN_API (include/forerun/export.h).
set(CMAKE_CXX_VISIBILITY_PRESET hidden)
set(CMAKE_VISIBILITY_INLINES_HIDDEN ON)

# Language, warnings and sanitizers of every target of ours.
add_library(forerun_options INTERFACE)
target_compile_features(forerun_options INTERFACE cxx_std_20)
target_include_directories(forerun_options INTERFACE "${PROJECT_SOURCE_DIR}/src" "${PROJECT_SOURCE_DIR}/include")
set(_warnings -Wall -Wextra -Wpedantic -Wshadow -Wconversion -Wno-sign-conversion -Wnon-virtual-dtor)
if(PROJECT_IS_TOP_LEVEL)
  list(APPEND _warnings -Werror)
endif()
target_compile_options(forerun_options INTERFACE "$<$<COMPILE_LANGUAGE:CXX>:${_warnings}>")
if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU" AND CMAKE_CXX_COMPILER_VERSION VERSION_LESS 13)
  # It takes a string that grows by a character for one that overlaps itself (PR 105651).
  target_compile_options(forerun_options INTERFACE -Wno-restrict)
endif()
if(FORERUN_SANITIZE)
  target_compile_options(forerun_options INTERFACE
    -fsanitize=${FORERUN_SANITIZE} -fno-sanitize-recover=all -fno-omit-frame-pointer)
  target_link_options(forerun_options INTERFACE -fsanitize=${FORERUN_SANITIZE})
  if(CMAKE_CXX_COMPILER_ID MATCHES "Clang")
    # It cannot be told of functions that are coroutines; GCC has no such check.
    target_compile_options(forerun_options INTERFACE -fno-sanitize=function)
  endif()
  if(FORERUN_SANITIZE STREQUAL "thread")
    # It does not understand fences. Asio's are beside a mutex that it does understand.
    target_compile_definitions(forerun_options INTERFACE BOOST_ASIO_DISABLE_FENCED_BLOCK)
  endif()
endif()

# forerun_precompiled(<target> <kind> [<header>...]): headers that nearly every file includes are compiled once
# for all targets of a kind, which have the same options. That is a third of what clang takes; GCC gains
# little, and warns of what the headers do.
function(forerun_precompiled target kind)
  if(NOT CMAKE_CXX_COMPILER_ID MATCHES "Clang" OR NOT CMAKE_UNITY_BUILD)
    return()
  endif()
  get_property(first GLOBAL PROPERTY forerun_precompiled_${kind})
  if(first)
    target_precompile_headers(${target} REUSE_FROM ${first})
  else()
    target_precompile_headers(${target} PRIVATE "${PROJECT_SOURCE_DIR}/cmake/precompiled.h" ${ARGN})
    set_property(GLOBAL PROPERTY forerun_precompiled_${kind} ${target})
  endif()
endfunction()

# forerun_library(<folder> SOURCES ... [DEPENDS ...] [TESTS ...] [STATISTICS ...] [ARITHMETIC])
#
# TESTS are unit tests: no weights, a few seconds. They become one program,
# <folder>_test, whose cases CTest lists under the label `unit`, or, where results may depend
# on how it is compiled (ARITHMETIC), under `arithmetic-unit`: `ctest -L unit` runs both.
# STATISTICS are tests that draw, search or kill so much that they run in the optimised build alone, as
# <folder>_statistics_test; what they call is called in TESTS too.
function(forerun_library name)
  cmake_parse_arguments(arg "ARITHMETIC" "" "SOURCES;DEPENDS;TESTS;STATISTICS" ${ARGN})
  add_library(forerun_${name} STATIC ${arg_SOURCES})
  target_link_libraries(forerun_${name} PUBLIC forerun_options ${arg_DEPENDS})
  set_target_properties(forerun_${name} PROPERTIES POSITION_INDEPENDENT_CODE ON)
  if(FORERUN_SANITIZE AND name MATCHES "^(grammar|optimise|retrieval|sampling|store|verify)$")
    # Tests spend their time there. Optimising the rest would take longer than it saves.
    target_compile_options(forerun_${name} PRIVATE -O1)
    forerun_precompiled(forerun_${name} optimised_libraries)
  else()
    forerun_precompiled(forerun_${name} libraries)
  endif()
  if(FORERUN_TESTS AND arg_TESTS)
    set(label unit)
    if(arg_ARITHMETIC)
      set(label arithmetic-unit)
    endif()
    forerun_test(${name}_test LABEL ${label} SOURCES ${arg_TESTS} DEPENDS forerun_${name})
  endif()
  if(FORERUN_TESTS AND arg_STATISTICS)
    forerun_test(${name}_statistics_test LABEL statistics SOURCES ${arg_STATISTICS} DEPENDS forerun_${name})
  endif()
endfunction()

# forerun_lightly_optimised(<target>): what talks to people and reads their files spends no time that anybody
# notices; it is compiled faster, and not slower to a user.
function(forerun_lightly_optimised target)
  target_compile_options(${target} PRIVATE $<$<CONFIG:Release>:-O1>)
endfunction()

if(FORERUN_TESTS)
  # What a build with sanitizers is tested with, and what an optimised one is.
  add_custom_target(unit_tests)
  add_custom_target(optimised_tests)
endif()

# forerun_test(<program> LABEL <label> SOURCES ... [DEPENDS ...])
function(forerun_test name)
  cmake_parse_arguments(arg "" "LABEL" "SOURCES;DEPENDS" ${ARGN})
  find_package(GTest REQUIRED)
  include(GoogleTest)
  add_executable(${name} ${arg_SOURCES})
  target_link_libraries(${name} PRIVATE forerun_options ${arg_DEPENDS} GTest::gtest GTest::gmock GTest::gtest_main)
  target_include_directories(${name} PRIVATE "${PROJECT_SOURCE_DIR}/tests")
  # What is tested is optimised; the tests themselves compile in half the time without, unless they
  # compute much themselves.
  if(NOT arg_LABEL STREQUAL statistics)
    target_compile_options(${name} PRIVATE -O0)
    forerun_precompiled(${name} tests <gmock/gmock.h> <gtest/gtest.h>)
  endif()
  if(arg_LABEL MATCHES unit)
    add_dependencies(unit_tests ${name})
  endif()
  if(NOT arg_LABEL STREQUAL unit)
    add_dependencies(optimised_tests ${name})
  endif()
  if(FORERUN_SANITIZE)
    # Looking for leaks takes seconds: once for a program, not for each of its cases.
    add_test(NAME ${name} COMMAND ${name})
    # Ten callers of what was allocated tell where that was; thirty take a tenth of the time to find.
    set_tests_properties(${name} PROPERTIES LABELS ${arg_LABEL} TIMEOUT 1800
      ENVIRONMENT "ASAN_OPTIONS=malloc_context_size=10")
    if(arg_LABEL MATCHES arithmetic OR name MATCHES "^(optimise|retrieval|text|tune)_test$")
      set_tests_properties(${name} PROPERTIES COST 100)  # the longest: first
    endif()
  else()
    gtest_discover_tests(${name} DISCOVERY_TIMEOUT 60 PROPERTIES LABELS ${arg_LABEL} TIMEOUT 900)
  endif()
endfunction()
