#include <stdlib.h>

int main(void) {
  volatile int *freed = malloc(sizeof *freed);
  if (!freed) return 2;
  *freed = 0;
  free((void *)freed);
  return *freed;
}
