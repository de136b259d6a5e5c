#ifndef UTF8_H
#define UTF8_H

#include <stdbool.h>
#include <stddef.h>

/** Whether bytes are UTF-8, without halves of surrogate pairs and without overlong forms. */
bool is_utf8(const void *bytes, size_t count);

#endif
