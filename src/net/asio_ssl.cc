// The one file that holds the code of Asio's TLS; asio.cc has the rest (BOOST_ASIO_SEPARATE_COMPILATION).
#include <boost/asio/ssl/impl/src.hpp>
