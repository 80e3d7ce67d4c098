# ggml, libllama and the Jinja engine of llama.cpp, from an unmodified source
# tree outside the repository.
#
# Compiling them takes minutes and no build type of ours changes them, so they
# are built once, by the first build folder that is configured; that folder
# exports its targets, and any other (the sanitizer build) links them by setting
# FORERUN_LLAMA_TARGETS to the exported file.
#
# Targets: ggml, llama, forerun_jinja, forerun_llama_chat, forerun_llama_internals; ggml-rpc-server, for tests.
# FORERUN_LLAMA_LIBRARIES: those that are archives.

set(FORERUN_LLAMA_LIBRARIES ggml-base ggml-cpu ggml-rpc ggml llama forerun_jinja forerun_llama_chat)
if(FORERUN_CUDA)
  list(APPEND FORERUN_LLAMA_LIBRARIES ggml-cuda)
endif()

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

if(NOT FORERUN_LLAMA_CPP)
  execute_process(COMMAND "${PROJECT_SOURCE_DIR}/scripts/setup.sh" llama
    OUTPUT_VARIABLE FORERUN_LLAMA_CPP OUTPUT_STRIP_TRAILING_WHITESPACE COMMAND_ERROR_IS_FATAL ANY)
endif()
if(NOT EXISTS "${FORERUN_LLAMA_CPP}/src/llama-vocab.cpp")
  message(FATAL_ERROR "no llama.cpp sources at '${FORERUN_LLAMA_CPP}': set FORERUN_LLAMA_CPP to a llama.cpp source tree, or to nothing to have one fetched")
endif()

# Its settings are its own: neither ours nor those of a project that fetches us.
block()
  set(BUILD_SHARED_LIBS OFF)
  set(CMAKE_POSITION_INDEPENDENT_CODE ON)
  set(CMAKE_EXPORT_COMPILE_COMMANDS OFF)
  set(CMAKE_UNITY_BUILD OFF)
  if(NOT CMAKE_BUILD_TYPE)
    set(CMAKE_BUILD_TYPE Release)  # it would set the cache's, for everybody
  endif()
  set(LLAMA_BUILD_COMMON OFF)
  set(LLAMA_ALL_WARNINGS OFF)
  set(GGML_OPENMP OFF)
  set(GGML_CCACHE OFF)
  set(GGML_CUDA ${FORERUN_CUDA})
  set(GGML_CUDA_NCCL OFF)
  set(GGML_NATIVE ${FORERUN_NATIVE})
  set(GGML_RPC ON)
  set(GGML_RPC_RDMA OFF)
  # It asks git for its version, which the unpacked tree does not know.
  find_program(FORERUN_FALSE false REQUIRED)
  set(GIT_EXECUTABLE "${FORERUN_FALSE}")
  add_subdirectory("${FORERUN_LLAMA_CPP}" llama.cpp EXCLUDE_FROM_ALL SYSTEM)
endblock()

include(cmake/amx.cmake)

# What libllama does once for a model, a request or a graph, not for a token, is compiled faster, not slower
# to a user.
target_compile_options(llama PRIVATE $<$<CONFIG:Release>:-O1>)
get_target_property(_llama_sources llama SOURCES)
list(FILTER _llama_sources INCLUDE REGEX "^(llama-(batch|context|kv-cache.*|memory.*|vocab)|unicode)\\.cpp$")
list(TRANSFORM _llama_sources PREPEND "${FORERUN_LLAMA_CPP}/src/")
set_property(SOURCE ${_llama_sources} TARGET_DIRECTORY llama
  APPEND PROPERTY COMPILE_OPTIONS $<$<CONFIG:Release>:-O3>)

# Layers on other machines: a server that goes away must not end the process.
foreach(file ggml-rpc transport)
  set_source_files_properties("${FORERUN_LLAMA_CPP}/ggml/src/ggml-rpc/${file}.cpp" TARGET_DIRECTORY ggml-rpc
    PROPERTIES COMPILE_OPTIONS "-include;${PROJECT_SOURCE_DIR}/cmake/rpc/${file}.h")
endforeach()
# What listens on those machines, from llama.cpp as it is.
if(EXISTS "${FORERUN_LLAMA_CPP}/tools/rpc/rpc-server.cpp")
  add_executable(ggml-rpc-server EXCLUDE_FROM_ALL "${FORERUN_LLAMA_CPP}/tools/rpc/rpc-server.cpp")
  target_link_libraries(ggml-rpc-server PRIVATE ggml)
  target_compile_features(ggml-rpc-server PRIVATE cxx_std_17)
endif()

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
set_target_properties(forerun_jinja PROPERTIES POSITION_INDEPENDENT_CODE ON UNITY_BUILD OFF)

# What tells how models write tool calls and thoughts. It calls helpers that src/chat has.
include("${_common}/parsers/sources.cmake")
add_library(forerun_llama_chat STATIC EXCLUDE_FROM_ALL
  ${LLAMA_CHAT_PARSERS_SOURCES}
  "${_common}/chat-auto-parser-generator.cpp"
  "${_common}/chat-auto-parser-helpers.cpp"
  "${_common}/chat-diff-analyzer.cpp"
  "${_common}/chat-peg-parser.cpp"
  "${_common}/chat.cpp"
  "${_common}/json-schema-to-grammar.cpp"
  "${_common}/json-schema.cpp"
  "${_common}/peg-parser.cpp"
  "${_common}/trie.cpp")
target_link_libraries(forerun_llama_chat PUBLIC forerun_jinja llama)
set_target_properties(forerun_llama_chat PROPERTIES POSITION_INDEPENDENT_CODE ON UNITY_BUILD ON UNITY_BUILD_BATCH_SIZE 8)
foreach(target forerun_jinja forerun_llama_chat)
  # They read what a person or a model wrote: compiled faster, not slower to a user.
  target_compile_options(${target} PRIVATE $<$<CONFIG:Release>:-O1>)
  target_compile_options(${target} PRIVATE -include "${PROJECT_SOURCE_DIR}/cmake/localtime_per_thread.h")
endforeach()

# Headers of libllama's own, and of how it is built (rpc/).
add_library(forerun_llama_internals INTERFACE)
target_include_directories(forerun_llama_internals SYSTEM INTERFACE "${FORERUN_LLAMA_CPP}/src" "${PROJECT_SOURCE_DIR}/cmake")

export(TARGETS ${FORERUN_LLAMA_LIBRARIES} forerun_llama_internals FILE "${PROJECT_BINARY_DIR}/llama-targets.cmake")
