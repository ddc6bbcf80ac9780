# Third-party libraries, all from Debian packages (tools/packages-build.txt).
find_package(Threads REQUIRED)
find_package(fmt REQUIRED)
find_package(spdlog REQUIRED)
find_package(toml11 REQUIRED)
find_package(GTest REQUIRED)
find_package(Boost 1.81 REQUIRED)
find_package(OpenSSL REQUIRED)
find_package(ZLIB REQUIRED)
find_package(benchmark REQUIRED)

# Libraries that bring no package file of CMake on Debian 12.
function(tocsin_find_library name header library)
  find_path(${name}_INCLUDE ${header} REQUIRED)
  find_library(${name}_LIBRARY ${library} REQUIRED)
  add_library(${name}::${name} UNKNOWN IMPORTED GLOBAL)
  set_target_properties(${name}::${name} PROPERTIES
    IMPORTED_LOCATION ${${name}_LIBRARY} INTERFACE_INCLUDE_DIRECTORIES ${${name}_INCLUDE})
endfunction()
tocsin_find_library(hiredis hiredis/read.h hiredis)
tocsin_find_library(zookeeper zookeeper/zookeeper.h zookeeper_mt)
tocsin_find_library(mariadb mariadb/mysql.h mariadb)
tocsin_find_library(rabbitmq amqp.h rabbitmq)
tocsin_find_library(rdkafka librdkafka/rdkafka.h rdkafka)
