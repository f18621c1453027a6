/*
 * Calls exit() in the place that its argument names. It must end with 37 then, and with 0 if
 * main returns, although a delegated function still blocks.
 */

#include <corelay.h>

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static void say_and_exit(void) {
  /* Whoever asks for its address is given one in the program, where that lies at fixed addresses. */
  void (*volatile end)(int) = exit;
  puts("exits");
  end(37);
}

static uint64_t exits(const uint64_t *words) {
  (void)words;
  say_and_exit();
  return 0;
}

static uint64_t nothing(const uint64_t *words) { return (void)words, 0; }

static uint64_t blocks(const uint64_t *words) {
  (void)words;
  while (pause() == -1)
    ;
  return 0;
}

static void callback_exits(void *user, uint64_t result) {
  (void)user, (void)result;
  say_and_exit();
}

static void *thread_exits(void *servers) {
  corelay_delegate_async(*(corelay_servers *)servers, 0, NULL, NULL, blocks, NULL, 0);
  say_and_exit();
  return NULL;
}

int main(int argc, char **argv) {
  const char *where = argc > 1 ? argv[1] : "";
  corelay_servers servers;
  if (corelay_launch_servers(2, &servers) != CORELAY_OK)
    return 1;
  /* The callback of this request never runs. */
  corelay_delegate_async(servers, 1, callback_exits, NULL, blocks, NULL, 0);
  if (!strcmp(where, "callback")) {
    corelay_delegate_async(servers, 0, callback_exits, NULL, nothing, NULL, 0);
    for (;;)
      corelay_poll();
  }
  if (!strcmp(where, "function")) {
    uint64_t result;
    corelay_delegate(servers, 0, exits, NULL, 0, &result);
  }
  if (!strcmp(where, "thread")) {
    pthread_t thread;
    if (pthread_create(&thread, NULL, thread_exits, &servers) == 0)
      pthread_join(thread, NULL);
    return 1;
  }
  if (!strcmp(where, "main"))
    say_and_exit();
  puts("returns");
  return 0;
}
