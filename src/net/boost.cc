// The one file that holds the code of Beast and JSON: every other one sees declarations alone.
#include <boost/beast/src.hpp>
#include <boost/json/src.hpp>
