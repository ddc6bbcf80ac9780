// tocsind: the server program.
#include <csignal>

#include <unistd.h>

#include "server/program.h"

int main(int argc, char** argv) {
  std::signal(SIGPIPE, SIG_IGN);
  return tocsin::RunProgram(tocsin::ProcessInputs(argc, argv, environ), stdout, stderr);
}
