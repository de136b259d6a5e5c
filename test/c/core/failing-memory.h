#ifndef FAILING_MEMORY_H
#define FAILING_MEMORY_H

/** Makes all allocations fail after this many; none if negative. */
void allow_allocations(int count);

#endif
