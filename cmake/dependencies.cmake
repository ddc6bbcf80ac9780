# Third-party libraries, all from Debian packages (tools/packages-build.txt).
find_package(Threads REQUIRED)
find_package(fmt REQUIRED)
find_package(spdlog REQUIRED)
find_package(toml11 REQUIRED)
find_package(GTest REQUIRED)
find_package(Boost 1.81 REQUIRED)
find_package(OpenSSL REQUIRED)
find_package(benchmark REQUIRED)
