// Builds where Boost.Fiber is there, so that one that is missing is told from a program of
// ours that is wrong.

#include <boost/fiber/operations.hpp>

int main() { boost::this_fiber::yield(); }
