// Reads what a server sent, and checks that each answer is complete and has the promised shape. Anything wrong ends the
// fuzz target.
#pragma once

#include <deque>
#include <string>

namespace tocsin::http {

struct Reply {
  int status = 0;
  std::string body;
  bool close = false;  // Connection: close
};

/// Takes the answers that are complete from the front of `bytes`. `heads` says for each request under way, in their
/// order, whether it was HEAD, whose answer has no body; what is answered is removed from its front.
std::deque<Reply> TakeAnswers(std::string& bytes, std::deque<bool>& heads);

}  // namespace tocsin::http
