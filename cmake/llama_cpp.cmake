# ggml, libllama and the Jinja engine of llama.cpp, from an unmodified source
# tree outside the repository.
#
# Compiling them takes minutes and no build type of ours changes them, so they
# are built once, by the first build folder that is configured; that folder
# exports its targets, and any other (the sanitizer build) links them by setting
# FORERUN_LLAMA_TARGETS to the exported file.
#
# Targets: ggml, llama, forerun_jinja.

if(FORERUN_LLAMA_TARGETS)
  if(NOT EXISTS "${FORERUN_LLAMA_TARGETS}")
    message(FATAL_ERROR "FORERUN_LLAMA_TARGETS: no such file: ${FORERUN_LLAMA_TARGETS} (configure and build the release preset first)")
  endif()
  find_package(Threads REQUIRED)
  if(FORERUN_CUDA)
    find_package(CUDAToolkit REQUIRED)
  endif()
  include("${FORERUN_LLAMA_TARGETS}")
  return()
endif()

if(NOT EXISTS "${FORERUN_LLAMA_CPP}/src/llama-vocab.cpp")
  message(FATAL_ERROR "no llama.cpp sources at '${FORERUN_LLAMA_CPP}': run 'make setup', or set FORERUN_LLAMA_CPP to a llama.cpp source tree")
endif()

set(BUILD_SHARED_LIBS OFF)
set(CMAKE_POSITION_INDEPENDENT_CODE ON)
set(CMAKE_EXPORT_COMPILE_COMMANDS OFF)
set(LLAMA_BUILD_COMMON OFF CACHE INTERNAL "")
set(LLAMA_ALL_WARNINGS OFF CACHE INTERNAL "")
# Our custom operations run in ggml's own thread pool; OpenMP would replace it.
set(GGML_OPENMP OFF CACHE INTERNAL "")
set(GGML_CCACHE OFF CACHE INTERNAL "")
set(GGML_CUDA ${FORERUN_CUDA} CACHE INTERNAL "")
set(GGML_CUDA_NCCL OFF CACHE INTERNAL "")
set(GGML_NATIVE ${FORERUN_NATIVE} CACHE INTERNAL "")

# It asks git for its version, which the unpacked tree does not know.
find_program(FORERUN_FALSE false REQUIRED)
set(GIT_EXECUTABLE "${FORERUN_FALSE}")
add_subdirectory("${FORERUN_LLAMA_CPP}" llama.cpp EXCLUDE_FROM_ALL SYSTEM)
unset(GIT_EXECUTABLE)

include(cmake/amx.cmake)

# The chat-template engine: of llama.cpp's `common` only these files are needed.
# `common/jinja` itself must not be an include folder: it has a string.h.
set(_common "${FORERUN_LLAMA_CPP}/common")
add_library(forerun_jinja STATIC EXCLUDE_FROM_ALL
  "${_common}/jinja/caps.cpp"
  "${_common}/jinja/lexer.cpp"
  "${_common}/jinja/parser.cpp"
  "${_common}/jinja/runtime.cpp"
  "${_common}/jinja/string.cpp"
  "${_common}/jinja/value.cpp"
  "${_common}/json.cpp"
  "${_common}/unicode.cpp")
target_include_directories(forerun_jinja SYSTEM PUBLIC "${_common}" "${FORERUN_LLAMA_CPP}/vendor")
target_link_libraries(forerun_jinja PUBLIC ggml)
target_compile_features(forerun_jinja PUBLIC cxx_std_17)
set_target_properties(forerun_jinja PROPERTIES POSITION_INDEPENDENT_CODE ON)

set(_exported ggml-base ggml-cpu ggml llama forerun_jinja)
if(FORERUN_CUDA)
  list(APPEND _exported ggml-cuda)
endif()
export(TARGETS ${_exported} FILE "${CMAKE_BINARY_DIR}/llama-targets.cmake")
