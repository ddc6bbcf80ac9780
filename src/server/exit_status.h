// The exit status of tocsind.
#pragma once

namespace tocsin {

constexpr int kExitOk = 0;
constexpr int kExitCannotStart = 1;  // the address or the data folder is in use, or the stored data is damaged
constexpr int kExitBadConfig = 2;
constexpr int kExitStoreFailed = 70;  // a write or a sync failed: start it again, and it recovers

}  // namespace tocsin
