# tocsin_library(NAME x SRCS ... DEPS ...)   one library for each folder of src/, with explicit sources
# tocsin_test(NAME x_test SRCS ... DEPS ... [LABELS unit|contract|concurrency ...])   one GoogleTest program
# tocsin_fuzzer(NAME x_fuzz SRCS ... DEPS ...)   one libFuzzer program, only in the fuzz preset
# tocsin_bench(NAME x_bench SRCS ... DEPS ...)   one benchmark program

# One precompiled header with the standard headers that nearly every file includes; libraries reuse it.
add_library(tocsin_pch OBJECT ${CMAKE_CURRENT_SOURCE_DIR}/cmake/pch.cc)
target_precompile_headers(tocsin_pch PRIVATE ${CMAKE_CURRENT_SOURCE_DIR}/cmake/pch.h)

function(tocsin_common target)
  target_include_directories(${target} PRIVATE ${PROJECT_SOURCE_DIR}/src)
  target_precompile_headers(${target} REUSE_FROM tocsin_pch)
endfunction()

function(tocsin_library)
  cmake_parse_arguments(A "" "NAME" "SRCS;DEPS" ${ARGN})
  add_library(${A_NAME} STATIC ${A_SRCS})
  tocsin_common(${A_NAME})
  target_link_libraries(${A_NAME} PUBLIC ${A_DEPS})
endfunction()

function(tocsin_test)
  cmake_parse_arguments(A "" "NAME" "SRCS;DEPS;LABELS" ${ARGN})
  add_executable(${A_NAME} ${A_SRCS})
  tocsin_common(${A_NAME})
  target_link_libraries(${A_NAME} PRIVATE ${A_DEPS} GTest::gmock_main)
  if(NOT A_LABELS)
    set(A_LABELS unit)
  endif()
  gtest_discover_tests(${A_NAME} DISCOVERY_TIMEOUT 60 PROPERTIES TIMEOUT 600 LABELS "${A_LABELS}")
endfunction()

function(tocsin_fuzzer)
  cmake_parse_arguments(A "" "NAME" "SRCS;DEPS" ${ARGN})
  if(NOT TOCSIN_FUZZ)
    return()
  endif()
  add_executable(${A_NAME} ${A_SRCS})
  tocsin_common(${A_NAME})
  target_link_libraries(${A_NAME} PRIVATE ${A_DEPS})
  target_link_options(${A_NAME} PRIVATE -fsanitize=fuzzer)
endfunction()

function(tocsin_bench)
  cmake_parse_arguments(A "" "NAME" "SRCS;DEPS" ${ARGN})
  add_executable(${A_NAME} ${A_SRCS})
  tocsin_common(${A_NAME})
  target_link_libraries(${A_NAME} PRIVATE ${A_DEPS})
endfunction()
