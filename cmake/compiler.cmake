# The compiler and the flags that every target shares.
#
# clang >= 17 is required: g++ 12 miscompiles coroutines (it destroys the temporaries of a co_await expression twice),
# and we want one compiler for the sanitizers, libFuzzer and clang-tidy.
if(NOT CMAKE_CXX_COMPILER_ID STREQUAL "Clang" OR CMAKE_CXX_COMPILER_VERSION VERSION_LESS 17)
  message(FATAL_ERROR
    "Tocsin builds with clang >= 17; this is ${CMAKE_CXX_COMPILER_ID} ${CMAKE_CXX_COMPILER_VERSION}. "
    "g++ 12 destroys temporaries of co_await expressions twice. Use a preset: cmake --preset dev")
endif()

set(CMAKE_CXX_STANDARD 23)
set(CMAKE_CXX_STANDARD_REQUIRED ON)
set(CMAKE_CXX_EXTENSIONS OFF)
set(CMAKE_EXPORT_COMPILE_COMMANDS ON)
set(CMAKE_RUNTIME_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR}/bin)

set(TOCSIN_SANITIZE "" CACHE STRING "sanitizers for -fsanitize=, e.g. address,undefined")
option(TOCSIN_FUZZ "build the libFuzzer programs too, and the libraries so that they can be fuzzed" OFF)
option(TOCSIN_COVERAGE "instrument for llvm-cov" OFF)

add_compile_options(-Wall -Wextra -Wpedantic -Wshadow -Wconversion -Wno-sign-conversion -Wnon-virtual-dtor
  -Woverloaded-virtual -Wimplicit-fallthrough -Wthread-safety -Werror
  -Wno-missing-designated-field-initializers)  # a field that is not named has its default: that is what they are for
# CRC32C and the 64-bit mixing hash use these instructions; every x86-64 server since 2013 has them.
if(CMAKE_SYSTEM_PROCESSOR STREQUAL "x86_64")
  add_compile_options(-march=x86-64-v3)
endif()
add_link_options(-fuse-ld=lld)

if(TOCSIN_SANITIZE)
  add_compile_options(-fsanitize=${TOCSIN_SANITIZE} -fno-sanitize-recover=all -fno-omit-frame-pointer)
  add_link_options(-fsanitize=${TOCSIN_SANITIZE})
endif()
if(TOCSIN_COVERAGE)
  add_compile_options(-fprofile-instr-generate -fcoverage-mapping)
  add_link_options(-fprofile-instr-generate)
endif()

find_program(CCACHE ccache)
if(CCACHE)
  # pch_defines and time_macros: what ccache needs to cache files that use a precompiled header.
  set(CMAKE_CXX_COMPILER_LAUNCHER ${CMAKE_COMMAND} -E env CCACHE_SLOPPINESS=pch_defines,time_macros,include_file_mtime,include_file_ctime ${CCACHE})
  add_compile_options(-Xclang -fno-pch-timestamp)
endif()
