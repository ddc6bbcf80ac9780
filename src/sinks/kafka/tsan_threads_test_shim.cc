// C11 threads as pthreads, only for TSan. librdkafka uses the former, which TSan does not know: it would see neither
// its threads nor what they do in turn. Definitions in the program come before those of the C library, where a mutex, a
// condition and a thread are those of pthreads too.
#include <cerrno>
#include <cstdint>
#include <memory>

#include <pthread.h>
#include <threads.h>

static_assert(sizeof(mtx_t) == sizeof(pthread_mutex_t) && sizeof(cnd_t) == sizeof(pthread_cond_t));

namespace {

struct Start {
  thrd_start_t run;
  void* argument;
};

void* Run(void* start) {
  const std::unique_ptr<Start> own(static_cast<Start*>(start));
  return reinterpret_cast<void*>(static_cast<intptr_t>(own->run(own->argument)));
}

pthread_mutex_t* Of(mtx_t* mutex) { return reinterpret_cast<pthread_mutex_t*>(mutex); }
pthread_cond_t* Of(cnd_t* condition) { return reinterpret_cast<pthread_cond_t*>(condition); }
int Said(int error) {
  if (error == 0) return thrd_success;
  return error == ETIMEDOUT ? thrd_timedout : thrd_error;
}

}  // namespace

extern "C" {

// TSan does not see the counts of references by which librdkafka knows that nobody has the lock any more. We have none
// of this kind.
const char* __tsan_default_suppressions();
const char* __tsan_default_suppressions() { return "race_top:pthread_rwlock_destroy\n"; }

int thrd_create(thrd_t* thread, thrd_start_t run, void* argument) {
  return Said(pthread_create(thread, nullptr, &Run, new Start{run, argument}));
}
int thrd_join(thrd_t thread, int* result) {
  void* returned = nullptr;
  const int error = pthread_join(thread, &returned);
  if (result != nullptr) *result = static_cast<int>(reinterpret_cast<intptr_t>(returned));
  return Said(error);
}

int mtx_init(mtx_t* mutex, int type) {
  pthread_mutexattr_t kind;
  pthread_mutexattr_init(&kind);
  if ((type & mtx_recursive) != 0) pthread_mutexattr_settype(&kind, PTHREAD_MUTEX_RECURSIVE);
  const int error = pthread_mutex_init(Of(mutex), &kind);
  pthread_mutexattr_destroy(&kind);
  return Said(error);
}
int mtx_lock(mtx_t* mutex) { return Said(pthread_mutex_lock(Of(mutex))); }
int mtx_unlock(mtx_t* mutex) { return Said(pthread_mutex_unlock(Of(mutex))); }
void mtx_destroy(mtx_t* mutex) { pthread_mutex_destroy(Of(mutex)); }

int cnd_init(cnd_t* condition) { return Said(pthread_cond_init(Of(condition), nullptr)); }
int cnd_signal(cnd_t* condition) { return Said(pthread_cond_signal(Of(condition))); }
int cnd_broadcast(cnd_t* condition) { return Said(pthread_cond_broadcast(Of(condition))); }
int cnd_wait(cnd_t* condition, mtx_t* mutex) { return Said(pthread_cond_wait(Of(condition), Of(mutex))); }
int cnd_timedwait(cnd_t* condition, mtx_t* mutex, const timespec* until) {
  return Said(pthread_cond_timedwait(Of(condition), Of(mutex), until));
}
void cnd_destroy(cnd_t* condition) { pthread_cond_destroy(Of(condition)); }
}
