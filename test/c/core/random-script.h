#ifndef RANDOM_SCRIPT_H
#define RANDOM_SCRIPT_H

#include <stddef.h>
#include <stdint.h>

/** Writes a script of so many random events, with the commands of the outbox, to standard output. */
void write_random_script(uint64_t seed, size_t events);

#endif
