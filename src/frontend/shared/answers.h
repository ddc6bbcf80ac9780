// How the handlers answer (handlers.h): with the result of a call to the service, in one piece or in steps.
#pragma once

#include <memory>
#include <type_traits>
#include <utility>

#include "frontend/shared/handlers.h"

namespace tocsin::shared {

/// Answers an error, or hands the result on. An exception ends the caller's connection alone.
template <class T, class Send>
Done<T> Answer(std::unique_ptr<Reply> reply, Send send) {
  return [reply = std::move(reply), send = std::move(send)](Result<T> result) mutable {
    const auto connection = reply->connection();
    connection->Guard([&] {
      if (!result) return reply->Fail(result.error());
      if constexpr (std::is_void_v<T>) {
        send(*reply);
      } else {
        send(*reply, *result);
      }
    });
  };
}

/// A long answer that is written in steps, of which the loop does one in a turn. `step` returns false at the end.
struct LongAnswer {
  Service& service;
  Loop& loop;
  std::unique_ptr<Reply> reply;
  std::move_only_function<bool()> step = {};
};

inline void WriteOn(const std::shared_ptr<LongAnswer>& answer) {
  const auto connection = answer->reply->connection();
  connection->Guard([&] {
    if (!answer->step()) return answer->reply->Send();
    answer->service.InTurn(answer->loop, [answer] { WriteOn(answer); });
  });
}

}  // namespace tocsin::shared
