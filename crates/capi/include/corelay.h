/*
 * corelay: share mutable state between cores fast. Instead of locking the data and moving it
 * to the thread, delegate the operation to the server that owns the data.
 *
 * Every call returns a corelay_status. Handles are checked: zero, stale and made-up ones are
 * refused. All other pointers must be what the call asks for. Nothing unwinds out of a call,
 * and nothing may leave a delegated function or a callback but by returning.
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
 * What every call returns.
 */
typedef enum corelay_status {
  /**
   * All is well.
   */
  CORELAY_OK = 0,
  /**
   * A pointer that must not be NULL is: to a function, to words, to where a result goes.
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
   * The client has been joined, or somebody is joining it.
   */
  CORELAY_JOINED,
  /**
   * There is no server of that number.
   */
  CORELAY_BAD_SERVER,
  /**
   * Zero servers, or more than CORELAY_MAX_SERVERS.
   */
  CORELAY_BAD_COUNT,
  /**
   * More than CORELAY_MAX_WORDS words.
   */
  CORELAY_TOO_MANY_WORDS,
  /**
   * Inside a delegated function, which may not use this library.
   */
  CORELAY_NESTED,
  /**
   * Inside a callback, where nothing may wait for callbacks.
   */
  CORELAY_IN_CALLBACK,
  /**
   * Inside a callback, and as many requests as possible wait already.
   */
  CORELAY_FULL,
  /**
   * A client cannot join itself.
   */
  CORELAY_JOINS_ITSELF,
  /**
   * The system gave no thread.
   */
  CORELAY_NO_THREAD,
  /**
   * A defect: the library panicked. What the call was to do may be done or not.
   */
  CORELAY_PANICKED,
} corelay_status;

/**
 * A group of servers, from corelay_launch_servers. Zero is none.
 */
typedef uint64_t corelay_servers;

/**
 * A function that is delegated with words: it gets a copy of as many as were given.
 */
typedef uint64_t (*corelay_function)(const uint64_t *words);

/**
 * Gets what a delegated function has returned: is called once, on the thread that delegated
 * it, inside a later call of this library.
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
 * What a client thread runs.
 */
typedef void *(*corelay_client_function)(void *arg);

#ifdef __cplusplus
extern "C" {
#endif // __cplusplus

/**
 * What one status, or any other number, means: a sentence that is never freed. Works
 * everywhere.
 */
const char *corelay_strerror(int status);

/**
 * The version of the library, "MAJOR.MINOR.PATCH": never freed. Works everywhere.
 */
const char *corelay_version(void);

/**
 * Launches a group of servers, each on a thread of its own; they are numbered from 0. Any
 * number of groups may be there at a time.
 *
 * What is delegated to one server runs there, one after the other. So the rule for shared
 * data is: all access to it is delegated to the same server. Before the launch and after the
 * shutdown the program may use it directly.
 *
 * Status: CORELAY_OK, CORELAY_NULL, CORELAY_BAD_COUNT, CORELAY_NO_THREAD, CORELAY_NESTED.
 *
 * The caller's duties:
 * `servers` is NULL or points to where the handle goes.
 */
enum corelay_status corelay_launch_servers(uint32_t count,
                                           corelay_servers *servers);

/**
 * How many servers a group has. Works everywhere.
 *
 * Status: CORELAY_OK, CORELAY_NULL, CORELAY_BAD_HANDLE, CORELAY_CLOSED.
 *
 * The caller's duties:
 * `count` is NULL or points to where the number goes.
 */
enum corelay_status corelay_count_servers(corelay_servers servers,
                                          uint32_t *count);

/**
 * Shuts a group of servers down: serves what has been accepted, ends the threads and returns
 * when they have ended. Later calls with this handle say CORELAY_CLOSED. Callbacks that are
 * due stay so: a thread's next barrier runs them.
 *
 * Status: CORELAY_OK, CORELAY_BAD_HANDLE, CORELAY_CLOSED, CORELAY_NESTED.
 */
enum corelay_status corelay_shutdown_servers(corelay_servers servers);

/**
 * Has a server call `function` with a copy of `count` words, and waits for what it returns.
 *
 * Status: CORELAY_OK, CORELAY_NULL, CORELAY_TOO_MANY_WORDS, CORELAY_BAD_HANDLE,
 * CORELAY_CLOSED, CORELAY_BAD_SERVER, CORELAY_NESTED.
 *
 * The caller's duties:
 * `words` points to `count` words, and may be NULL where that is 0; `result` is NULL or
 * points to where the result goes. `function` may be called with these words on the server's
 * thread, touches shared data only if all access to it is delegated to that server, and
 * returns: no longjmp, no pthread_exit, no exception leaves it.
 */
enum corelay_status corelay_delegate(corelay_servers servers,
                                     uint32_t server,
                                     corelay_function function,
                                     const uint64_t *words,
                                     size_t count,
                                     uint64_t *result);

/**
 * Has a server call `function` with a copy of `count` words, and goes on. Later `callback`
 * gets `user` and what the function has returned; where it is NULL nobody does. It is called
 * inside a later call on this thread: corelay_async_barrier, corelay_poll, a request. Where
 * many requests are in flight (256 to a server), the call waits and calls callbacks itself.
 *
 * What one thread delegates to one server runs in that order.
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
 * As corelay_delegate, for a function with a pointer.
 *
 * Status: CORELAY_OK, CORELAY_NULL, CORELAY_BAD_HANDLE, CORELAY_CLOSED, CORELAY_BAD_SERVER,
 * CORELAY_NESTED.
 *
 * The caller's duties:
 * As for corelay_delegate. What `arg` points to is the function's to use; it may lie on the
 * caller's stack, since the call waits.
 */
enum corelay_status corelay_delegate_ptr(corelay_servers servers,
                                         uint32_t server,
                                         corelay_ptr_function function,
                                         void *arg,
                                         uint64_t *result);

/**
 * As corelay_delegate_async, for a function with a pointer.
 *
 * Status: CORELAY_OK, CORELAY_NULL, CORELAY_BAD_HANDLE, CORELAY_CLOSED, CORELAY_BAD_SERVER,
 * CORELAY_NESTED, CORELAY_FULL.
 *
 * The caller's duties:
 * As for corelay_delegate_async. What `arg` points to is the function's to use until it has
 * returned, which the callback or a barrier tells.
 */
enum corelay_status corelay_delegate_async_ptr(corelay_servers servers,
                                               uint32_t server,
                                               corelay_callback callback,
                                               void *user,
                                               corelay_ptr_function function,
                                               void *arg);

/**
 * Creates a client thread, which runs `function` with `arg`. Whatever it has delegated is
 * done, and its callbacks have run, before it can be joined. Its stack takes 8 MiB.
 *
 * Any thread may delegate, also those that the program creates otherwise; they need a
 * corelay_async_barrier where others rely on their callbacks.
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
 * Waits for the end of a client thread and of all that it has delegated, and gives what its
 * function has returned. Any other thread may join it, once.
 *
 * Status: CORELAY_OK, CORELAY_NULL, CORELAY_BAD_HANDLE, CORELAY_JOINED,
 * CORELAY_JOINS_ITSELF, CORELAY_NESTED.
 *
 * The caller's duties:
 * `result` is NULL or points to where the result goes.
 */
enum corelay_status corelay_client_thread_join(corelay_client client,
                                               void **result);

/**
 * Waits until everything that this thread has delegated is done and its callbacks have run,
 * also what those have delegated.
 *
 * Status: CORELAY_OK, CORELAY_NESTED, CORELAY_IN_CALLBACK.
 */
enum corelay_status corelay_async_barrier(void);

/**
 * Calls the callbacks of what has been answered to this thread; does not wait.
 *
 * Status: CORELAY_OK, CORELAY_NESTED, CORELAY_IN_CALLBACK.
 */
enum corelay_status corelay_poll(void);

#ifdef __cplusplus
}  // extern "C"
#endif  // __cplusplus

#endif  /* CORELAY_H */
