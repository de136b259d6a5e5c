#ifndef FORMATS_UTF8_H
#define FORMATS_UTF8_H

#include <stdbool.h>
#include <stddef.h>

/** Whether bytes are well-formed UTF-8: no surrogates, no overlong forms. */
bool ps_is_utf8(const void *bytes, size_t count);

/** Returns the length of the sequence at the start of `left` bytes; 0 if they do not begin with one. */
size_t ps_utf8_sequence(const void *text, size_t left);

/** Whether the text begins with C0 80, which stands for a NUL in a name and never occurs in UTF-8. */
bool ps_is_nul_of_name(const void *text, size_t left);

/** Replaces every byte that is not UTF-8 by a question mark. */
void ps_make_utf8(char *text);

#endif
