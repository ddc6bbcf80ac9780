// Reads what a server sent, and checks that each answer is whole and of the shape that is promised: a fuzz target's
// judge. Anything wrong ends the program.
#pragma once

#include <deque>
#include <string>
#include <string_view>

namespace tocsin::http {

struct Reply {
  int status = 0;
  std::string body;
  bool close = false;  // Connection: close
};

class Answers {
 public:
  void Take(std::string_view bytes) { bytes_ += bytes; }
  /// The answers that are whole. `heads` says for each request under way, in their order, whether it was HEAD, whose
  /// answer has no body; what is taken is removed from its front.
  std::deque<Reply> Whole(std::deque<bool>& heads);
  /// Bytes of an answer that is not whole.
  size_t left() const { return bytes_.size(); }
  const std::string& bytes() const { return bytes_; }

 private:
  bool TakeOne(bool head, Reply& reply);

  std::string bytes_;
};

}  // namespace tocsin::http
