// How many frames this machine's loopback carries between two threads, and their acknowledgements back.
#pragma once

namespace tocsin::bench {

/// Frames of 140 bytes, 100 in a write, some writes under way; each frame is answered by one of 20 bytes.
double LoopbackFramesPerSecond(double seconds);

}  // namespace tocsin::bench
