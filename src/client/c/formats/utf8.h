#ifndef FORMATS_UTF8_H
#define FORMATS_UTF8_H

#include <stdbool.h>
#include <stddef.h>

/** Whether bytes are UTF-8, without halves of surrogate pairs and without overlong forms. */
bool ps_is_utf8(const void *bytes, size_t count);

/** Bytes of the sequence that begins here, of `left` that there are; 0 if none does. */
size_t ps_utf8_sequence(const void *text, size_t left);

/** Whether the two bytes that stand for a NUL in a name begin here: C0 80, which no UTF-8 has. */
bool ps_is_nul_of_name(const void *text, size_t left);

/** Puts a question mark in place of every byte that is no UTF-8. */
void ps_make_utf8(char *text);

#endif
