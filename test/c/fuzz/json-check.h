#ifndef JSON_CHECK_H
#define JSON_CHECK_H

#include <stdbool.h>

/** Whether text is one JSON object, of RFC 8259, in UTF-8. */
bool is_json_object(const char *text);

#endif
