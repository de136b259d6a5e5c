#ifndef FAILING_MEMORY_H
#define FAILING_MEMORY_H

/** Lets so many allocations succeed from now on, and no more; all of them if negative. */
void allow_allocations(int count);

#endif
