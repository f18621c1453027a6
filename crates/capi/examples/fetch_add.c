/*
 * The thesis's fetch-and-add: clients add one to variables chosen at random, each on 64 bytes
 * of its own, by asking the server that owns it. Variable v belongs to server v % SERVERS.
 *
 * fetch_add [SERVERS [CLIENTS [VARIABLES [SECONDS]]]]      (1, 1, 1024, 3)
 *
 * Prints the throughput. Ends with 1 if the answer is wrong, and with 2 if the arguments or the
 * machine are unsuitable.
 */

#include <corelay.h>

#include <errno.h>
#include <stdalign.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

typedef struct {
  alignas(64) uint64_t count;
} variable;

typedef struct {
  corelay_client handle;
  uint64_t seed;
  uint64_t asked;
  uint64_t answered;
} client;

static corelay_servers servers;
static uint32_t server_count = 1;
static variable *variables;
static uint64_t variable_count = 1024;
static double seconds = 3;

static void must(corelay_status status, const char *what) {
  if (status != CORELAY_OK) {
    fprintf(stderr, "fetch_add: cannot %s: %s\n", what, corelay_strerror(status));
    exit(2);
  }
}

static double now(void) {
  struct timespec time;
  clock_gettime(CLOCK_MONOTONIC, &time);
  return (double)time.tv_sec + (double)time.tv_nsec / 1e9;
}

/* xorshift64: its period of 2^64 - 1 is all that is needed. */
static uint64_t random_word(uint64_t *state) {
  uint64_t x = *state;
  x ^= x << 13;
  x ^= x >> 7;
  x ^= x << 17;
  return *state = x;
}

/* Runs on the server. */
static uint64_t add_one(const uint64_t *words) {
  variable *v = (variable *)(uintptr_t)words[0];
  return v->count++;
}

/* Runs on the client, later. */
static void answered(void *user, uint64_t before) {
  client *me = user;
  (void)before;
  me->answered++;
}

static void *run(void *arg) {
  client *me = arg;
  /* Nothing that the loop writes is shared with other clients. */
  uint64_t seed = me->seed, asked = 0;
  for (double end = now() + seconds; now() < end;) {
    for (int i = 0; i < 1024; i++, asked++) {
      uint64_t at = random_word(&seed) % variable_count;
      must(corelay_delegate_async(servers, (uint32_t)(at % server_count), answered, me, add_one,
                                  CORELAY_WORDS((uintptr_t)&variables[at])),
           "delegate");
    }
  }
  me->asked = asked;
  return me;
}

static uint64_t number(const char *text, uint64_t most, const char *what) {
  char *end;
  errno = 0;
  unsigned long long n = strtoull(text, &end, 10);
  if (errno || end == text || *end || *text == '-' || n == 0 || n > most) {
    fprintf(stderr, "fetch_add: %s: 1 to %llu are allowed, not `%s`\n", what,
            (unsigned long long)most, text);
    exit(2);
  }
  return n;
}

int main(int argc, char **argv) {
  uint64_t client_count = 1;
  if (argc > 1) server_count = (uint32_t)number(argv[1], CORELAY_MAX_SERVERS, "SERVERS");
  if (argc > 2) client_count = number(argv[2], 1024, "CLIENTS");
  if (argc > 3) variable_count = number(argv[3], 1u << 22, "VARIABLES");
  if (argc > 4) {
    char *end;
    seconds = strtod(argv[4], &end);
    if (end == argv[4] || *end || !(seconds > 0 && seconds < 1e6)) {
      fprintf(stderr, "fetch_add: SECONDS: more than 0, not `%s`\n", argv[4]);
      return 2;
    }
  }
  if (argc > 5) {
    fprintf(stderr, "usage: fetch_add [SERVERS [CLIENTS [VARIABLES [SECONDS]]]]\n");
    return 2;
  }
  if (server_count > variable_count) server_count = (uint32_t)variable_count;

  variables = aligned_alloc(alignof(variable), variable_count * sizeof(variable));
  /* A client counts its answers on lines of its own. */
  size_t stride = (sizeof(client) + 127) / 128 * 128;
  char *clients = aligned_alloc(128, client_count * stride);
  if (!variables || !clients) {
    fprintf(stderr, "fetch_add: no memory for that\n");
    return 2;
  }
  for (uint64_t v = 0; v < variable_count; v++) variables[v].count = 0;

  must(corelay_launch_servers(server_count, &servers), "launch servers");
  double begin = now();
  for (uint64_t i = 0; i < client_count; i++) {
    client *c = (client *)(clients + i * stride);
    *c = (client){.seed = 0x9e3779b97f4a7c15 * (i + 1)};
    must(corelay_client_thread_create(&c->handle, run, c), "create a client");
  }
  uint64_t asked = 0, answers = 0, sum = 0;
  for (uint64_t i = 0; i < client_count; i++) {
    void *result;
    must(corelay_client_thread_join(((client *)(clients + i * stride))->handle, &result),
         "join a client");
    asked += ((client *)result)->asked;
    answers += ((client *)result)->answered;
  }
  double time = now() - begin;
  must(corelay_shutdown_servers(servers), "shut the servers down");
  for (uint64_t v = 0; v < variable_count; v++) sum += variables[v].count;

  printf("corelay %s: %u servers, %llu clients, %llu variables: %.2f Mops\n", corelay_version(),
         server_count, (unsigned long long)client_count, (unsigned long long)variable_count,
         (double)asked / time / 1e6);
  printf("asked %llu, answered %llu, the sum is %llu: %s\n", (unsigned long long)asked,
         (unsigned long long)answers, (unsigned long long)sum,
         asked == answers && asked == sum ? "right" : "WRONG");
  free(clients);
  free(variables);
  return asked == answers && asked == sum && asked > 0 ? 0 : 1;
}
