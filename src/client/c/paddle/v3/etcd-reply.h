#ifndef PADDLE_V3_ETCD_REPLY_H
#define PADDLE_V3_ETCD_REPLY_H

#include <stdbool.h>
#include <stddef.h>

/** Room for a decoded key or value, the final zero included. */
#define PS_ETCD_TEXT_SIZE 4096

/** A place in the JSON of a reply to a range request of etcd's HTTP gateway. */
struct ps_etcd_reply {
  const char *at;
};

/** False if the text is no reply; one without entries is. */
bool ps_etcd_reply_open(struct ps_etcd_reply *reply, const char *json);

/** Reads the next entry; false after the last, or at one that is malformed. Text that is longer than
 * the room or holds a zero byte is read as "". */
bool ps_etcd_reply_next(struct ps_etcd_reply *reply, char key[PS_ETCD_TEXT_SIZE], char value[PS_ETCD_TEXT_SIZE]);

/** Writes text in base64; false if there is no room. */
bool ps_base64_encode(const char *text, char *target, size_t size);

#endif
