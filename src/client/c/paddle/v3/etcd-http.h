#ifndef PADDLE_V3_ETCD_HTTP_H
#define PADDLE_V3_ETCD_HTTP_H

#include <stddef.h>
#include <stdint.h>

/** Asks an etcd for all keys from `first` to before `end`. The JSON it answers with, to be freed; NULL
 * with the reason in `reason`. */
char *ps_etcd_range(const char *endpoint, const char *first, const char *end, int64_t timeout_ms,
                    char *reason, size_t size);

#endif
