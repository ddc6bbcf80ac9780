# tocsin_library(NAME x SRCS ... DEPS ...)   one library for each folder of src/, with explicit sources
# tocsin_test(NAME x_test SRCS ... DEPS ... [LABELS unit|contract|concurrency ...] [ONE_PROCESS])   one GoogleTest program
#   The label is `unit` unless given. `make test` runs tests with the label `concurrency` once more under TSan.
#   ctest starts a process for each test; with ONE_PROCESS one for all, for tests that share servers which start slowly.
# tocsin_fuzzer(NAME x_fuzz SRCS ... DEPS ...)   one libFuzzer program, only in the asan preset
#   `make test` runs each for a few seconds, from the inputs in tests/fuzz/corpus/<name>/.
# tocsin_bench(NAME x_bench SRCS ... DEPS ...)   one benchmark program

# tocsin_embed(VARIABLE file)   reads a file for configure_file; CMake runs again when the file changes

# What tools/test.sh builds: it takes its lists of programs from here.
add_custom_target(unit_tests)
add_custom_target(concurrency_tests)
add_custom_target(fuzzers)

# Precompiled headers with what nearly every file includes: one for programs and libraries, one for tests; and of each a
# second one with Asio, for everything that links net, whose files compile in three quarters of the time with it.
foreach(header pch test_pch net_pch net_test_pch)
  add_library(tocsin_${header} OBJECT ${CMAKE_CURRENT_SOURCE_DIR}/cmake/pch.cc)
  target_precompile_headers(tocsin_${header} PRIVATE ${CMAKE_CURRENT_SOURCE_DIR}/cmake/${header}.h)
endforeach()
target_link_libraries(tocsin_test_pch PRIVATE GTest::gmock)
target_link_libraries(tocsin_net_pch PRIVATE Boost::headers)
target_link_libraries(tocsin_net_test_pch PRIVATE Boost::headers GTest::gmock)

set(tocsin_code_options "")
set(tocsin_test_options "")
if(TOCSIN_FUZZ)
  set(tocsin_code_options -fsanitize=fuzzer-no-link)
endif()
if(TOCSIN_SANITIZE)
  # Tests need not be fast, and without optimisation they compile in half the time.
  set(tocsin_test_options -O0)
endif()
foreach(net "" net_)
  target_compile_options(tocsin_${net}pch PRIVATE ${tocsin_code_options})
  target_compile_options(tocsin_${net}test_pch PRIVATE ${tocsin_test_options})
endforeach()

# ON if the target links net, directly or not.
function(tocsin_links_net target result)
  get_property(known GLOBAL PROPERTY tocsin_${target}_links_net)
  if("${known}" STREQUAL "")
    set(known OFF)
    get_target_property(linked ${target} LINK_LIBRARIES)
    foreach(library ${linked})
      if(library STREQUAL net)
        set(known ON)
      elseif(TARGET ${library} AND NOT library MATCHES "::")
        tocsin_links_net(${library} deeper)
        if(deeper)
          set(known ON)
        endif()
      endif()
    endforeach()
    set_property(GLOBAL PROPERTY tocsin_${target}_links_net ${known})
  endif()
  set(${result} ${known} PARENT_SCOPE)
endfunction()

# Gives every target its precompiled header. Called last, when all targets and what they link are known.
function(tocsin_precompile_headers)
  get_target_property(definitions net COMPILE_DEFINITIONS)
  target_compile_definitions(tocsin_net_pch PRIVATE ${definitions})
  target_compile_definitions(tocsin_net_test_pch PRIVATE ${definitions})
  foreach(header pch test_pch)
    get_property(targets GLOBAL PROPERTY tocsin_targets_with_${header})
    foreach(target ${targets})
      tocsin_links_net(${target} links_net)
      if(links_net)
        target_precompile_headers(${target} REUSE_FROM tocsin_net_${header})
      else()
        target_precompile_headers(${target} REUSE_FROM tocsin_${header})
      endif()
    endforeach()
  endforeach()
endfunction()

function(tocsin_embed variable file)
  set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${file})
  file(READ ${file} text)
  set(${variable} "${text}" PARENT_SCOPE)
endfunction()

function(tocsin_common target)
  target_include_directories(${target} PRIVATE ${PROJECT_SOURCE_DIR}/src)
  target_compile_options(${target} PRIVATE ${tocsin_code_options})
  set_property(GLOBAL APPEND PROPERTY tocsin_targets_with_pch ${target})
endfunction()

function(tocsin_test_code target)
  target_include_directories(${target} PRIVATE ${PROJECT_SOURCE_DIR}/src ${PROJECT_SOURCE_DIR}/tests)
  target_compile_options(${target} PRIVATE ${tocsin_test_options})
  set_property(GLOBAL APPEND PROPERTY tocsin_targets_with_test_pch ${target})
endfunction()

function(tocsin_library)
  cmake_parse_arguments(A "" "NAME" "SRCS;DEPS" ${ARGN})
  add_library(${A_NAME} STATIC ${A_SRCS})
  if(A_DEPS MATCHES GTest::)
    tocsin_test_code(${A_NAME})
  else()
    tocsin_common(${A_NAME})
  endif()
  target_link_libraries(${A_NAME} PUBLIC ${A_DEPS})
endfunction()

function(tocsin_test)
  cmake_parse_arguments(A "ONE_PROCESS" "NAME" "SRCS;DEPS;LABELS" ${ARGN})
  add_executable(${A_NAME} ${A_SRCS})
  tocsin_test_code(${A_NAME})
  target_link_libraries(${A_NAME} PRIVATE ${A_DEPS} GTest::gmock_main)
  if(NOT A_LABELS)
    set(A_LABELS unit)
  endif()
  add_dependencies(unit_tests ${A_NAME})
  if(concurrency IN_LIST A_LABELS)
    add_dependencies(concurrency_tests ${A_NAME})
  endif()
  if(A_ONE_PROCESS)
    # The report of its own tests is counted in place of the one test that ctest sees (tools/count_tests.py).
    add_test(NAME ${A_NAME} COMMAND ${A_NAME})
    set_tests_properties(${A_NAME} PROPERTIES TIMEOUT 1800 LABELS "${A_LABELS}"
      ENVIRONMENT "GTEST_OUTPUT=xml:${CMAKE_BINARY_DIR}/reports/")
    return()
  endif()
  # PRE_TEST: ctest asks the programs for their tests, so that building them does not run them. gtest_discover_tests
  # passes on one label only; joined, each of them is still found by ctest -L, which takes a regular expression.
  list(JOIN A_LABELS "+" labels)
  gtest_discover_tests(${A_NAME} DISCOVERY_MODE PRE_TEST DISCOVERY_TIMEOUT 60 NO_PRETTY_VALUES
    PROPERTIES TIMEOUT 600 LABELS "${labels}")
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
  set_target_properties(${A_NAME} PROPERTIES RUNTIME_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR}/fuzzers)
  add_dependencies(fuzzers ${A_NAME})
endfunction()

function(tocsin_bench)
  cmake_parse_arguments(A "" "NAME" "SRCS;DEPS" ${ARGN})
  add_executable(${A_NAME} ${A_SRCS})
  tocsin_common(${A_NAME})
  target_link_libraries(${A_NAME} PRIVATE ${A_DEPS})
endfunction()
