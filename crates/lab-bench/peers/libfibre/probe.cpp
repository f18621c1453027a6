// Does libfibre's header compile, and does the library link?
#include "libfibre/fibre.h"

int main() {
    FibreInit();
    return 0;
}
