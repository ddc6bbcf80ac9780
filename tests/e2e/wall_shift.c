// Loaded into a program with LD_PRELOAD: shifts its wall clock, and no other clock, by the milliseconds that stand at
// the start of the file that WALL_SHIFT_FILE names. Whoever writes to the file sets the clock at that instant.
#define _GNU_SOURCE
#include <fcntl.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

static const volatile int64_t* shift_ms;

__attribute__((constructor)) static void OpenShift(void) {
  const char* name = getenv("WALL_SHIFT_FILE");
  const int file = name ? open(name, O_RDONLY | O_CLOEXEC) : -1;
  if (file < 0) abort();
  shift_ms = mmap(NULL, sizeof(*shift_ms), PROT_READ, MAP_SHARED, file, 0);
  if (shift_ms == MAP_FAILED) abort();
  close(file);
}

int clock_gettime(clockid_t id, struct timespec* ts) {
  const int done = (int)syscall(SYS_clock_gettime, id, ts);
  if (done != 0 || (id != CLOCK_REALTIME && id != CLOCK_REALTIME_COARSE) || shift_ms == NULL) return done;
  const int64_t ns = (int64_t)ts->tv_sec * 1000000000 + ts->tv_nsec + *shift_ms * 1000000;
  ts->tv_sec = ns / 1000000000;
  ts->tv_nsec = ns % 1000000000;
  return 0;
}
