/*
 * Checks what C programs rely on, and everything that they can get wrong: each mistake gives
 * an error code, never a crash. Ends with 0 if all of it holds.
 */

#include <corelay.h>

#include <limits.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static int checks, failures;

/* Called on the main thread only; other threads hand their findings to it. */
static void check(int good, int line, const char *what) {
  checks++;
  if (!good) {
    failures++;
    printf("errors.c:%d: %s\n", line, what);
  }
}

#define CHECK(what) check(!!(what), __LINE__, #what)

/* Checks a status, and prints both names if it is another one. */
static void expect(int found, int wanted, int line, const char *what) {
  checks++;
  if (found != wanted) {
    failures++;
    printf("errors.c:%d: %s: `%s`, not `%s`\n", line, what, corelay_strerror(found),
           corelay_strerror(wanted));
  }
}

#define EXPECT(wanted, call) expect((int)(call), (wanted), __LINE__, #call)

/* ---- functions to be delegated, and callbacks ---- */

static uint64_t sum(const uint64_t *words) { return words[0] + words[1]; }
static uint64_t answer(const uint64_t *words) { return (void)words, 42; }

static uint64_t weigh0(const uint64_t *w) { return (void)w, 7; }
static uint64_t weigh1(const uint64_t *w) { return w[0]; }
static uint64_t weigh2(const uint64_t *w) { return w[0] + 2 * w[1]; }
static uint64_t weigh3(const uint64_t *w) { return weigh2(w) + 3 * w[2]; }
static uint64_t weigh4(const uint64_t *w) { return weigh3(w) + 4 * w[3]; }
static uint64_t weigh5(const uint64_t *w) { return weigh4(w) + 5 * w[4]; }
static uint64_t weigh6(const uint64_t *w) { return weigh5(w) + 6 * w[5]; }

static uint64_t increment(void *arg) { return ++*(uint64_t *)arg; }

static uint64_t increment_word(const uint64_t *words) {
  return increment((void *)(uintptr_t)words[0]);
}

/* The results that the callbacks of a thread have seen. */
typedef struct {
  pthread_t thread;
  uint64_t calls, last, in_order, elsewhere;
} seen;

static void see(void *user, uint64_t result) {
  seen *s = user;
  s->in_order += result == s->last + 1;
  s->last = result;
  s->calls++;
  s->elsewhere += !pthread_equal(s->thread, pthread_self());
}

/* ---- pointers, handles, numbers ---- */

static void *give_back(void *arg) { return arg; }

static void null_pointers(corelay_servers servers) {
  corelay_client client = 0;
  uint64_t result = 5, words[2] = {1, 2};

  EXPECT(CORELAY_NULL, corelay_launch_servers(1, NULL));
  EXPECT(CORELAY_NULL, corelay_count_servers(servers, NULL));
  EXPECT(CORELAY_NULL, corelay_client_thread_create(NULL, give_back, NULL));
  EXPECT(CORELAY_NULL, corelay_client_thread_create(&client, NULL, NULL));
  CHECK(client == 0);
  EXPECT(CORELAY_NULL, corelay_delegate(servers, 0, NULL, words, 2, &result));
  EXPECT(CORELAY_NULL, corelay_delegate(servers, 0, sum, NULL, 2, &result));
  EXPECT(CORELAY_NULL, corelay_delegate(servers, 0, sum, words, 2, NULL));
  EXPECT(CORELAY_NULL, corelay_delegate_async(servers, 0, NULL, NULL, NULL, words, 2));
  EXPECT(CORELAY_NULL, corelay_delegate_async(servers, 0, NULL, NULL, sum, NULL, 2));
  EXPECT(CORELAY_NULL, corelay_delegate_ptr(servers, 0, NULL, &result, &result));
  EXPECT(CORELAY_NULL, corelay_delegate_ptr(servers, 0, increment, &result, NULL));
  EXPECT(CORELAY_NULL, corelay_delegate_async_ptr(servers, 0, NULL, NULL, NULL, &result));
  CHECK(result == 5);

  /* These may be NULL: words where there are none, the callback, and what is only passed on. */
  EXPECT(CORELAY_OK, corelay_delegate(servers, 0, answer, CORELAY_NO_WORDS, &result));
  CHECK(result == 42);
  EXPECT(CORELAY_OK, corelay_delegate_async(servers, 0, NULL, NULL, answer, CORELAY_NO_WORDS));
  EXPECT(CORELAY_OK, corelay_async_barrier());

  void *back = &result;
  EXPECT(CORELAY_OK, corelay_client_thread_create(&client, give_back, NULL));
  EXPECT(CORELAY_NULL, corelay_client_thread_join(client, NULL)); /* and may be joined yet */
  EXPECT(CORELAY_OK, corelay_client_thread_join(client, &back));
  CHECK(back == NULL);
}

/* Checks that every call that takes servers returns the same status for this handle. */
static void servers_are(corelay_servers servers, corelay_status status, int line) {
  uint64_t result = 0;
  uint32_t count = 0;
  expect((int)corelay_count_servers(servers, &count), (int)status, line, "count");
  expect((int)corelay_delegate(servers, 0, answer, CORELAY_NO_WORDS, &result), (int)status, line,
         "delegate");
  expect((int)corelay_delegate_async(servers, 0, NULL, NULL, answer, CORELAY_NO_WORDS), (int)status,
         line, "delegate_async");
  expect((int)corelay_delegate_async(servers, 0, see, &result, answer, CORELAY_NO_WORDS),
         (int)status, line, "delegate_async with a callback");
  expect((int)corelay_delegate_ptr(servers, 0, increment, &result, &result), (int)status, line,
         "delegate_ptr");
  expect((int)corelay_delegate_async_ptr(servers, 0, NULL, NULL, increment, &result), (int)status,
         line, "delegate_async_ptr");
  expect((int)corelay_shutdown_servers(servers), (int)status, line, "shutdown");
  check(count == 0 && result == 0, line, "nothing is done");
}

static void made_up_handles(corelay_servers servers) {
  corelay_client client;
  void *back;
  EXPECT(CORELAY_OK, corelay_client_thread_create(&client, give_back, NULL));
  const uint64_t handles[] = {0, 1, 2, 42, UINT32_MAX, UINT64_MAX, (uintptr_t)&client,
                              servers + 1, servers - 1, servers ^ (1ull << 24),
                              servers + (1ull << 32), servers & UINT32_MAX};
  for (size_t i = 0; i < sizeof handles / sizeof *handles; i++) {
    servers_are(handles[i], CORELAY_BAD_HANDLE, __LINE__);
    EXPECT(CORELAY_BAD_HANDLE, corelay_client_thread_join(handles[i], &back));
  }
  /* A handle of the other kind. */
  servers_are(client, CORELAY_BAD_HANDLE, __LINE__);
  EXPECT(CORELAY_BAD_HANDLE, corelay_client_thread_join(servers, &back));
  EXPECT(CORELAY_OK, corelay_client_thread_join(client, &back));
}

static void numbers_out_of_range(corelay_servers servers, uint32_t count) {
  corelay_servers none = 0;
  uint64_t result = 5;
  EXPECT(CORELAY_BAD_COUNT, corelay_launch_servers(0, &none));
  EXPECT(CORELAY_BAD_COUNT, corelay_launch_servers(CORELAY_MAX_SERVERS + 1, &none));
  EXPECT(CORELAY_BAD_COUNT, corelay_launch_servers(UINT32_MAX, &none));
  CHECK(none == 0);

  const uint32_t beyond[] = {count, count + 1, INT_MAX, UINT32_MAX};
  for (size_t i = 0; i < sizeof beyond / sizeof *beyond; i++) {
    uint32_t s = beyond[i];
    EXPECT(CORELAY_BAD_SERVER, corelay_delegate(servers, s, answer, CORELAY_NO_WORDS, &result));
    EXPECT(CORELAY_BAD_SERVER,
           corelay_delegate_async(servers, s, see, NULL, answer, CORELAY_NO_WORDS));
    EXPECT(CORELAY_BAD_SERVER, corelay_delegate_ptr(servers, s, increment, &result, &result));
    EXPECT(CORELAY_BAD_SERVER,
           corelay_delegate_async_ptr(servers, s, see, NULL, increment, &result));
  }

  const uint64_t words[7] = {1, 2, 3, 4, 5, 6, 7};
  const size_t many[] = {CORELAY_MAX_WORDS + 1, 64, SIZE_MAX};
  for (size_t i = 0; i < sizeof many / sizeof *many; i++) {
    EXPECT(CORELAY_TOO_MANY_WORDS, corelay_delegate(servers, 0, sum, words, many[i], &result));
    EXPECT(CORELAY_TOO_MANY_WORDS,
           corelay_delegate_async(servers, 0, see, NULL, sum, words, many[i]));
  }
  CHECK(result == 5);
}

/* ---- what works ---- */

static void every_number_of_words(corelay_servers servers) {
  const corelay_function functions[] = {weigh0, weigh1, weigh2, weigh3, weigh4, weigh5, weigh6};
  const uint64_t results[] = {7, 10, 50, 140, 300, 550, 910};
  const uint64_t words[] = {10, 20, 30, 40, 50, 60};
  for (size_t n = 0; n <= CORELAY_MAX_WORDS; n++) {
    uint64_t result = 0;
    EXPECT(CORELAY_OK, corelay_delegate(servers, 0, functions[n], words, n, &result));
    CHECK(result == results[n]);
    seen s = {.thread = pthread_self()};
    EXPECT(CORELAY_OK, corelay_delegate_async(servers, 0, see, &s, functions[n], words, n));
    EXPECT(CORELAY_OK, corelay_delegate_async(servers, 0, NULL, NULL, functions[n], words, n));
    EXPECT(CORELAY_OK, corelay_async_barrier());
    CHECK(s.calls == 1 && s.last == results[n] && s.elsewhere == 0);
  }
  uint64_t result = 0;
  EXPECT(CORELAY_OK, corelay_delegate(servers, 0, sum, CORELAY_WORDS(30, 12), &result));
  CHECK(result == 42);
}

/* Callbacks run once, in order, on their thread: more of them than fit at a time. */
static void callbacks(corelay_servers servers) {
  uint64_t count = 0, result = 0;
  seen s = {.thread = pthread_self()};
  for (int i = 0; i < 5000; i++) {
    corelay_status status =
        i % 2 ? corelay_delegate_async(servers, 1, see, &s, increment_word,
                                       CORELAY_WORDS((uintptr_t)&count))
              : corelay_delegate_async_ptr(servers, 1, see, &s, increment, &count);
    if (status != CORELAY_OK) EXPECT(CORELAY_OK, status);
    if (i % 1000 == 0) EXPECT(CORELAY_OK, corelay_poll());
  }
  EXPECT(CORELAY_OK, corelay_async_barrier());
  CHECK(s.calls == 5000 && s.in_order == 5000 && s.elsewhere == 0);
  EXPECT(CORELAY_OK, corelay_delegate_ptr(servers, 1, increment, &count, &result));
  CHECK(result == 5001 && count == 5001);
}

typedef struct {
  corelay_servers servers;
  uint64_t count;
  seen seen;
  int ending;
} job;

/* Makes one more request, until there have been 100. */
static void ask_again(void *user, uint64_t result) {
  job *j = user;
  see(&j->seen, result);
  if (result < 100 &&
      corelay_delegate_async_ptr(j->servers, 0, ask_again, j, increment, &j->count) != CORELAY_OK) {
    j->seen.elsewhere++;
  }
}

/* Returns without a barrier. */
static void *ask_and_leave(void *arg) {
  job *j = arg;
  j->seen.thread = pthread_self();
  corelay_delegate_async_ptr(j->servers, 0, ask_again, j, increment, &j->count);
  return &j->count;
}

static void a_barrier_before_the_join(corelay_servers servers) {
  job j = {.servers = servers};
  corelay_client client;
  void *result = NULL;
  EXPECT(CORELAY_OK, corelay_client_thread_create(&client, ask_and_leave, &j));
  EXPECT(CORELAY_OK, corelay_client_thread_join(client, &result));
  CHECK(result == &j.count && j.count == 100);
  CHECK(j.seen.calls == 100 && j.seen.in_order == 100 && j.seen.elsewhere == 0);
  EXPECT(CORELAY_JOINED, corelay_client_thread_join(client, &result));

  /* The same for a thread that the program has created itself. */
  job k = {.servers = servers};
  pthread_t thread;
  CHECK(pthread_create(&thread, NULL, ask_and_leave, &k) == 0);
  CHECK(pthread_join(thread, &result) == 0);
  CHECK(k.count == 100 && k.seen.calls == 100 && k.seen.elsewhere == 0);
}

/* ---- where a call is made ---- */

typedef struct {
  corelay_servers servers;
  corelay_client client;
  int line;
} nested;

/* Makes every call, and returns the line of the first that is not refused. */
static uint64_t call_everything(void *arg) {
  nested *n = arg;
  corelay_servers more;
  corelay_client client;
  uint64_t word = 0, result;
  uint32_t count;
  void *back;
#define REFUSED(call) \
  if ((call) != CORELAY_NESTED) return __LINE__
  for (uint32_t s = 0; s < 2; s++) {
    REFUSED(corelay_delegate(n->servers, s, answer, CORELAY_NO_WORDS, &result));
    REFUSED(corelay_delegate_async(n->servers, s, see, &result, answer, CORELAY_NO_WORDS));
    REFUSED(corelay_delegate_async(n->servers, s, NULL, NULL, answer, CORELAY_NO_WORDS));
    REFUSED(corelay_delegate_ptr(n->servers, s, increment, &word, &result));
    REFUSED(corelay_delegate_async_ptr(n->servers, s, NULL, NULL, increment, &word));
  }
  REFUSED(corelay_delegate(0, 9, answer, CORELAY_NO_WORDS, &result));
  REFUSED(corelay_async_barrier());
  REFUSED(corelay_poll());
  REFUSED(corelay_launch_servers(1, &more));
  REFUSED(corelay_shutdown_servers(n->servers));
  REFUSED(corelay_client_thread_create(&client, give_back, NULL));
  REFUSED(corelay_client_thread_join(n->client, &back));
  if (corelay_count_servers(n->servers, &count) != CORELAY_OK || count != 2) return __LINE__;
  return word;
}

static void nothing_inside_a_delegated_function(corelay_servers servers) {
  nested n = {.servers = servers};
  uint64_t line = 1;
  void *back;
  EXPECT(CORELAY_OK, corelay_client_thread_create(&n.client, give_back, NULL));
  EXPECT(CORELAY_OK, corelay_delegate_ptr(servers, 0, call_everything, &n, &line));
  if (line) printf("errors.c:%llu: not refused\n", (unsigned long long)line);
  CHECK(line == 0);
  seen s = {.thread = pthread_self(), .last = 1};
  EXPECT(CORELAY_OK, corelay_delegate_async_ptr(servers, 1, see, &s, call_everything, &n));
  EXPECT(CORELAY_OK, corelay_async_barrier());
  CHECK(s.calls == 1 && s.last == 0);
  EXPECT(CORELAY_OK, corelay_client_thread_join(n.client, &back));
}

typedef struct {
  corelay_servers servers;
  corelay_status barrier, poll, delegate, async, last;
  uint64_t accepted, count;
  seen seen;
} within;

static void call_inside(void *user, uint64_t result) {
  within *w = user;
  w->barrier = corelay_async_barrier();
  w->poll = corelay_poll();
  w->delegate = corelay_delegate(w->servers, 0, answer, CORELAY_NO_WORDS, &result);
  /* No callback runs meanwhile, so this ends. */
  do {
    w->last = corelay_delegate_async_ptr(w->servers, 0, see, &w->seen, increment, &w->count);
    w->accepted += w->last == CORELAY_OK;
  } while (w->last == CORELAY_OK && w->accepted < 1000000);
}

static void inside_a_callback(corelay_servers servers) {
  within w = {.servers = servers, .seen = {.thread = pthread_self()}};
  EXPECT(CORELAY_OK,
         corelay_delegate_async(servers, 0, call_inside, &w, answer, CORELAY_NO_WORDS));
  EXPECT(CORELAY_OK, corelay_async_barrier());
  EXPECT(CORELAY_IN_CALLBACK, w.barrier);
  EXPECT(CORELAY_IN_CALLBACK, w.poll);
  EXPECT(CORELAY_OK, w.delegate);
  EXPECT(CORELAY_FULL, w.last);
  CHECK(w.accepted >= 256 && w.count == w.accepted && w.seen.calls == w.accepted);
  CHECK(w.seen.elsewhere == 0);
}

static _Atomic corelay_client own;

static void *join_itself(void *arg) {
  void *result;
  corelay_client client;
  while (!(client = atomic_load(&own))) {
  }
  *(corelay_status *)arg = corelay_client_thread_join(client, &result);
  return NULL;
}

static void *join_another(void *arg) {
  void *result;
  nested *n = arg;
  n->line = (int)corelay_client_thread_join(n->client, &result);
  return result;
}

static void joins(void) {
  corelay_client client;
  corelay_status status = CORELAY_OK;
  void *result;
  EXPECT(CORELAY_OK, corelay_client_thread_create(&client, join_itself, &status));
  atomic_store(&own, client);
  EXPECT(CORELAY_OK, corelay_client_thread_join(client, &result));
  EXPECT(CORELAY_JOINS_ITSELF, status);
  EXPECT(CORELAY_JOINED, corelay_client_thread_join(client, &result));

  /* A thread other than its creator joins it; then nobody else can. */
  nested n = {.line = -1};
  EXPECT(CORELAY_OK, corelay_client_thread_create(&n.client, give_back, &n));
  EXPECT(CORELAY_OK, corelay_client_thread_create(&client, join_another, &n));
  EXPECT(CORELAY_OK, corelay_client_thread_join(client, &result));
  EXPECT(CORELAY_OK, n.line);
  CHECK(result == &n);
  EXPECT(CORELAY_JOINED, corelay_client_thread_join(n.client, &result));
}

/* ---- shutdown ---- */

static void *use_after_shutdown(void *arg) {
  servers_are(*(corelay_servers *)arg, CORELAY_CLOSED, __LINE__); /* main waits in the join */
  return NULL;
}

static void shutdown(void) {
  corelay_servers servers, later;
  corelay_client client;
  uint64_t count = 0;
  void *result;
  seen s = {.thread = pthread_self()};
  EXPECT(CORELAY_OK, corelay_launch_servers(1, &servers));
  for (int i = 0; i < 100; i++) {
    EXPECT(CORELAY_OK, corelay_delegate_async_ptr(servers, 0, see, &s, increment, &count));
  }
  EXPECT(CORELAY_OK, corelay_shutdown_servers(servers));
  CHECK(count == 100);
  servers_are(servers, CORELAY_CLOSED, __LINE__);
  EXPECT(CORELAY_OK, corelay_async_barrier());
  CHECK(s.calls == 100 && s.in_order == 100 && s.elsewhere == 0);

  EXPECT(CORELAY_OK, corelay_client_thread_create(&client, use_after_shutdown, &servers));
  EXPECT(CORELAY_OK, corelay_client_thread_join(client, &result));

  /* Later groups get other handles, whichever entry they are kept in. */
  for (int i = 0; i < 20; i++) {
    EXPECT(CORELAY_OK, corelay_launch_servers(1, &later));
    CHECK(later != servers);
    EXPECT(CORELAY_OK, corelay_delegate_ptr(later, 0, increment, &count, &count));
    servers_are(servers, CORELAY_CLOSED, __LINE__);
    EXPECT(CORELAY_OK, corelay_delegate_async_ptr(later, 0, NULL, NULL, increment, &count));
    EXPECT(CORELAY_OK, corelay_shutdown_servers(later));
  }
  CHECK(count == 140);
}

static void independent_groups(corelay_servers first) {
  corelay_servers second;
  uint64_t a = 0, b = 0;
  uint32_t count = 0;
  EXPECT(CORELAY_OK, corelay_launch_servers(3, &second));
  CHECK(second != first);
  EXPECT(CORELAY_OK, corelay_count_servers(first, &count));
  CHECK(count == 2);
  EXPECT(CORELAY_OK, corelay_count_servers(second, &count));
  CHECK(count == 3);
  for (int i = 0; i < 300; i++) {
    EXPECT(CORELAY_OK, corelay_delegate_async_ptr(first, 1, NULL, NULL, increment, &a));
    EXPECT(CORELAY_OK, corelay_delegate_async_ptr(second, 2, NULL, NULL, increment, &b));
  }
  EXPECT(CORELAY_OK, corelay_async_barrier());
  EXPECT(CORELAY_OK, corelay_shutdown_servers(second));
  CHECK(a == 300 && b == 300);
  EXPECT(CORELAY_OK, corelay_delegate_ptr(first, 1, increment, &a, &a));
  CHECK(a == 301);
}

static void sentences(void) {
  const char *unknown = corelay_strerror(-1);
  CHECK(corelay_strerror(INT_MAX) == unknown && corelay_strerror(INT_MIN) == unknown);
  CHECK(strcmp(corelay_strerror(CORELAY_OK), "all is well") == 0);
  CHECK(strstr(corelay_strerror(CORELAY_NESTED), "delegated function") != NULL);
  for (int s = CORELAY_OK; s <= CORELAY_PANICKED; s++) CHECK(corelay_strerror(s) != unknown);
  CHECK(corelay_strerror(CORELAY_PANICKED + 1) == unknown);
  CHECK(strchr(corelay_version(), '.') != NULL);
}

int main(void) {
  corelay_servers servers;
  sentences();
  EXPECT(CORELAY_OK, corelay_async_barrier()); /* nothing has been asked for */
  EXPECT(CORELAY_OK, corelay_poll());
  servers_are(0, CORELAY_BAD_HANDLE, __LINE__);

  EXPECT(CORELAY_OK, corelay_launch_servers(2, &servers));
  null_pointers(servers);
  made_up_handles(servers);
  numbers_out_of_range(servers, 2);
  every_number_of_words(servers);
  callbacks(servers);
  a_barrier_before_the_join(servers);
  nothing_inside_a_delegated_function(servers);
  inside_a_callback(servers);
  joins();
  independent_groups(servers);
  EXPECT(CORELAY_OK, corelay_shutdown_servers(servers));
  EXPECT(CORELAY_CLOSED, corelay_shutdown_servers(servers));
  shutdown();

  printf("%d checks, %d failures\n", checks, failures);
  return failures != 0;
}
