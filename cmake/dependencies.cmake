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

# hiredis of Debian 12 (0.14) brings no package file of CMake.
find_path(HIREDIS_INCLUDE hiredis/read.h REQUIRED)
find_library(HIREDIS_LIBRARY hiredis REQUIRED)
add_library(hiredis::hiredis UNKNOWN IMPORTED)
set_target_properties(hiredis::hiredis PROPERTIES
  IMPORTED_LOCATION ${HIREDIS_LIBRARY} INTERFACE_INCLUDE_DIRECTORIES ${HIREDIS_INCLUDE})

find_path(ZOOKEEPER_INCLUDE zookeeper/zookeeper.h REQUIRED)
find_library(ZOOKEEPER_LIBRARY zookeeper_mt REQUIRED)
add_library(zookeeper::zookeeper UNKNOWN IMPORTED)
set_target_properties(zookeeper::zookeeper PROPERTIES
  IMPORTED_LOCATION ${ZOOKEEPER_LIBRARY} INTERFACE_INCLUDE_DIRECTORIES ${ZOOKEEPER_INCLUDE})

find_path(RABBITMQ_INCLUDE amqp.h REQUIRED)
find_library(RABBITMQ_LIBRARY rabbitmq REQUIRED)
add_library(rabbitmq::rabbitmq UNKNOWN IMPORTED)
set_target_properties(rabbitmq::rabbitmq PROPERTIES
  IMPORTED_LOCATION ${RABBITMQ_LIBRARY} INTERFACE_INCLUDE_DIRECTORIES ${RABBITMQ_INCLUDE})

find_path(RDKAFKA_INCLUDE librdkafka/rdkafka.h REQUIRED)
find_library(RDKAFKA_LIBRARY rdkafka REQUIRED)
add_library(rdkafka::rdkafka UNKNOWN IMPORTED)
set_target_properties(rdkafka::rdkafka PROPERTIES
  IMPORTED_LOCATION ${RDKAFKA_LIBRARY} INTERFACE_INCLUDE_DIRECTORIES ${RDKAFKA_INCLUDE})
