// The one file that holds the code of Asio's TLS; src/net/asio.cc has the rest (BOOST_ASIO_SEPARATE_COMPILATION).
#include <boost/asio/ssl/impl/src.hpp>
