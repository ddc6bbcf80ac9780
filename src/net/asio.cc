// The one file that holds Asio's own code: every other one sees declarations alone (BOOST_ASIO_SEPARATE_COMPILATION).
#include <boost/asio/impl/src.hpp>
