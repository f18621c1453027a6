/*
 * corelay: share mutable state between cores fast. Instead of locking the data and moving it
 * to the thread, delegate the operation to the server that owns the data.
 *
 * Every call returns a corelay_status. Handles are checked: zero, stale and made-up ones are
 * refused. The program answers for all other pointers. Nothing unwinds out of a call. A
 * delegated function or a callback may only be left by returning.
 *
 * Written by `cargo xtask header` from crates/capi; do not edit.
 */

#ifndef CORELAY_H
#define CORELAY_H

#include <stddef.h>
#include <stdint.h>

/*
 * Words and their count, as two arguments, for a delegated function:
 *   corelay_delegate(servers, 0, add, CORELAY_WORDS(by, (uintptr_t)&variable), &result);
 * A function that takes none gets CORELAY_NO_WORDS.
 */
#ifndef __cplusplus
#define CORELAY_WORDS(...) \
  (const uint64_t[]){__VA_ARGS__}, (sizeof((uint64_t[]){__VA_ARGS__}) / sizeof(uint64_t))
#else
/* C++ has no such literals: the words lie in a temporary, which lives until the call has returned. */
extern "C++" {
template <typename... W>
struct corelay_temporary {
  uint64_t words[sizeof...(W)];
  const uint64_t *get() const { return words; }
  static constexpr size_t count() { return sizeof...(W); }
};
template <typename... W>
corelay_temporary<W...> corelay_words_of(W... words) {
  return {{static_cast<uint64_t>(words)...}};
}
} // extern "C++"
#define CORELAY_WORDS(...) \
  corelay_words_of(__VA_ARGS__).get(), decltype(corelay_words_of(__VA_ARGS__))::count()
#endif
#define CORELAY_NO_WORDS NULL, 0

/**
 * The most servers of a group.
 */
#define CORELAY_MAX_SERVERS 1024

/**
 * The most words that are delegated with a function.
 */
#define CORELAY_MAX_WORDS 6

/**
 * The result of every call.
 */
typedef enum corelay_status {
  /**
   * The call succeeded.
   */
  CORELAY_OK = 0,
  /**
   * A pointer that must not be NULL is NULL: to a function, to words, to where a result goes.
   */
  CORELAY_NULL,
  /**
   * No such handle was ever given.
   */
  CORELAY_BAD_HANDLE,
  /**
   * The servers have been shut down.
   */
  CORELAY_CLOSED,
  /**
   * The client has been joined, or another thread is joining it.
   */
  CORELAY_JOINED,
  /**
   * The group has no server of that number.
   */
  CORELAY_BAD_SERVER,
  /**
   * The number of servers is zero, or more than CORELAY_MAX_SERVERS.
   */
  CORELAY_BAD_COUNT,
  /**
   * There are more than CORELAY_MAX_WORDS words.
   */
  CORELAY_TOO_MANY_WORDS,
  /**
   * The call was made inside a delegated function, which may not use this library.
   */
  CORELAY_NESTED,
  /**
   * The call was made inside a callback, where nothing may wait for callbacks.
   */
  CORELAY_IN_CALLBACK,
  /**
   * The call was made inside a callback, and as many requests as possible wait already.
   */
  CORELAY_FULL,
  /**
   * A client cannot join itself.
   */
  CORELAY_JOINS_ITSELF,
  /**
   * The system could not start a thread.
   */
  CORELAY_NO_THREAD,
  /**
   * A defect: the library panicked. The call may have taken effect or not.
   */
  CORELAY_PANICKED,
} corelay_status;

/**
 * A group of servers, from corelay_launch_servers. Zero is none.
 */
typedef uint64_t corelay_servers;

/**
 * A function that is delegated with words. It gets a copy of as many words as were given.
 */
typedef uint64_t (*corelay_function)(const uint64_t *words);

/**
 * A function that gets the result of a delegated function. It is called once, on the thread that
 * delegated: inside a later call of this library, or at the thread's end.
 */
typedef void (*corelay_callback)(void *user, uint64_t result);

/**
 * A function that is delegated with a pointer.
 */
typedef uint64_t (*corelay_ptr_function)(void *arg);

/**
 * A client thread, from corelay_client_thread_create. Zero is none.
 */
typedef uint64_t corelay_client;

/**
 * The function that a client thread runs.
 */
typedef void *(*corelay_client_function)(void *arg);

#ifdef __cplusplus
extern "C" {
#endif // __cplusplus

/**
 * The meaning of a status, or of any other number: a sentence that is never freed. May be called
 * everywhere.
 */
const char *corelay_strerror(int status);

/**
 * The version of the library, "MAJOR.MINOR.PATCH", which is never freed. May be called everywhere.
 */
const char *corelay_version(void);

/**
 * Launches a group of servers, each on a thread of its own, numbered from 0. Any number of groups
 * may exist at a time.
 *
 * The requests to one server run there one after the other. So the rule for shared data is: all
 * access to it is delegated to the same server. Before the launch and after the shutdown the
 * program may use it directly.
 *
 * Status: CORELAY_OK, CORELAY_NULL, CORELAY_BAD_COUNT, CORELAY_NO_THREAD, CORELAY_NESTED.
 *
 * The caller's duties:
 * `servers` is NULL or points to where the handle goes.
 */
enum corelay_status corelay_launch_servers(uint32_t count,
                                           corelay_servers *servers);

/**
 * Gives the number of servers of a group. May be called everywhere.
 *
 * Status: CORELAY_OK, CORELAY_NULL, CORELAY_BAD_HANDLE, CORELAY_CLOSED.
 *
 * The caller's duties:
 * `count` is NULL or points to where the number goes.
 */
enum corelay_status corelay_count_servers(corelay_servers servers,
                                          uint32_t *count);

/**
 * Shuts a group of servers down: serves what has been accepted, ends the threads and returns when
 * they have ended. Later calls with this handle return CORELAY_CLOSED. Callbacks that are due
 * remain due: a thread's next barrier runs them.
 *
 * Status: CORELAY_OK, CORELAY_BAD_HANDLE, CORELAY_CLOSED, CORELAY_NESTED.
 */
enum corelay_status corelay_shutdown_servers(corelay_servers servers);

/**
 * Has a server call `function` with a copy of `count` words, and waits for the result.
 *
 * Status: CORELAY_OK, CORELAY_NULL, CORELAY_TOO_MANY_WORDS, CORELAY_BAD_HANDLE,
 * CORELAY_CLOSED, CORELAY_BAD_SERVER, CORELAY_NESTED.
 *
 * The caller's duties:
 * `words` points to `count` words, and may be NULL if `count` is 0. `result` is NULL or points to
 * where the result goes. `function` may be called with these words on the server's thread. It
 * touches shared data only if all access to that data is delegated to the same server. It returns:
 * no longjmp, no pthread_exit and no exception leaves it.
 */
enum corelay_status corelay_delegate(corelay_servers servers,
                                     uint32_t server,
                                     corelay_function function,
                                     const uint64_t *words,
                                     size_t count,
                                     uint64_t *result);

/**
 * Has a server call `function` with a copy of `count` words, and goes on. Later `callback` gets
 * `user` and the result; if `callback` is NULL, nobody does. It is called inside a later call on
 * this thread (corelay_async_barrier, corelay_poll, a request), or at the thread's end. If many
 * requests are in flight (256 to a server), the call waits and runs callbacks itself.
 *
 * The requests of one thread to one server run in their order.
 *
 * Status: CORELAY_OK, CORELAY_NULL, CORELAY_TOO_MANY_WORDS, CORELAY_BAD_HANDLE,
 * CORELAY_CLOSED, CORELAY_BAD_SERVER, CORELAY_NESTED, CORELAY_FULL.
 *
 * The caller's duties:
 * As for corelay_delegate. `callback` may be called with `user` on this thread, and returns.
 */
enum corelay_status corelay_delegate_async(corelay_servers servers,
                                           uint32_t server,
                                           corelay_callback callback,
                                           void *user,
                                           corelay_function function,
                                           const uint64_t *words,
                                           size_t count);

/**
 * Does what corelay_delegate does, for a function with a pointer.
 *
 * Status: CORELAY_OK, CORELAY_NULL, CORELAY_BAD_HANDLE, CORELAY_CLOSED, CORELAY_BAD_SERVER,
 * CORELAY_NESTED.
 *
 * The caller's duties:
 * As for corelay_delegate. The function may use whatever `arg` points to. That may lie on the
 * caller's stack, since the call waits.
 */
enum corelay_status corelay_delegate_ptr(corelay_servers servers,
                                         uint32_t server,
                                         corelay_ptr_function function,
                                         void *arg,
                                         uint64_t *result);

/**
 * Does what corelay_delegate_async does, for a function with a pointer.
 *
 * Status: CORELAY_OK, CORELAY_NULL, CORELAY_BAD_HANDLE, CORELAY_CLOSED, CORELAY_BAD_SERVER,
 * CORELAY_NESTED, CORELAY_FULL.
 *
 * The caller's duties:
 * As for corelay_delegate_async. The function may use whatever `arg` points to until it has
 * returned; after the callback, or after a barrier, it has.
 */
enum corelay_status corelay_delegate_async_ptr(corelay_servers servers,
                                               uint32_t server,
                                               corelay_callback callback,
                                               void *user,
                                               corelay_ptr_function function,
                                               void *arg);

/**
 * Creates a client thread, which runs `function` with `arg`. Everything that it has delegated is
 * done, and its callbacks have run, before it can be joined. Its stack takes 8 MiB.
 *
 * Any thread may delegate, even one that the program creates otherwise. Such a thread needs a
 * corelay_async_barrier if others rely on its callbacks.
 *
 * Status: CORELAY_OK, CORELAY_NULL, CORELAY_NO_THREAD, CORELAY_NESTED.
 *
 * The caller's duties:
 * `client` is NULL or points to where the handle goes; the thread may run before it is there.
 * `function` may be called with `arg` on another thread, and returns.
 */
enum corelay_status corelay_client_thread_create(corelay_client *client,
                                                 corelay_client_function function,
                                                 void *arg);

/**
 * Waits for the end of a client thread and of everything that it has delegated, and gives the
 * result of its function. Any other thread may join it, once.
 *
 * Status: CORELAY_OK, CORELAY_NULL, CORELAY_BAD_HANDLE, CORELAY_JOINED, CORELAY_JOINS_ITSELF,
 * CORELAY_NESTED.
 *
 * The caller's duties:
 * `result` is NULL or points to where the result goes.
 */
enum corelay_status corelay_client_thread_join(corelay_client client,
                                               void **result);

/**
 * Waits until everything that this thread has delegated is done and its callbacks have run,
 * including whatever these have delegated.
 *
 * Status: CORELAY_OK, CORELAY_NESTED, CORELAY_IN_CALLBACK.
 */
enum corelay_status corelay_async_barrier(void);

/**
 * Runs the callbacks of the requests that have been answered to this thread. Does not wait.
 *
 * Status: CORELAY_OK, CORELAY_NESTED, CORELAY_IN_CALLBACK.
 */
enum corelay_status corelay_poll(void);

#ifdef __cplusplus
}  // extern "C"
#endif  // __cplusplus

#endif  /* CORELAY_H */
