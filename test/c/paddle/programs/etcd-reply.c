/* Reads replies of etcd: whole ones, and ones that are cut or changed. */
#include "etcd.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define EXPECT(condition)                                                             \
  do {                                                                                \
    if (!(condition)) {                                                               \
      fprintf(stderr, "%s:%d: expected %s\n", __FILE__, __LINE__, #condition);        \
      exit(1);                                                                        \
    }                                                                                 \
  } while (0)

static const char whole[] =
    "{\"header\":{\"cluster_id\":\"1\",\"revision\":\"9\"},\"kvs\":["
    "{\"key\":\"L3BzLzA=\",\"create_revision\":\"2\",\"value\":\"bmF0czovL2E6NDIyMg==\",\"lease\":\"-5\"},"
    " { \"key\" : \"L3BzLzE=\", \"version\" : 7 } ,"
    "{\"value\":\"ag==\",\"key\":\"L3BzL2pvYg==\"}],\"count\":\"3\"}";

static char key[PS_ETCD_TEXT_SIZE];
static char value[PS_ETCD_TEXT_SIZE];

static void expect_entry(struct ps_etcd_reply *reply, const char *name, const char *text) {
  EXPECT(ps_etcd_reply_next(reply, key, value));
  EXPECT(strcmp(key, name) == 0);
  EXPECT(strcmp(value, text) == 0);
}

static void read_whole(void) {
  struct ps_etcd_reply reply;
  EXPECT(ps_etcd_reply_open(&reply, whole));
  expect_entry(&reply, "/ps/0", "nats://a:4222");
  expect_entry(&reply, "/ps/1", "");
  expect_entry(&reply, "/ps/job", "j");
  EXPECT(!ps_etcd_reply_next(&reply, key, value));
  EXPECT(ps_etcd_reply_open(&reply, "{\"header\":{},\"count\":\"0\"}"));
  EXPECT(!ps_etcd_reply_next(&reply, key, value));
}

static void encode(void) {
  char text[16];
  EXPECT(ps_base64_encode("/ps/", text, sizeof text) && strcmp(text, "L3BzLw==") == 0);
  EXPECT(ps_base64_encode("/ps0", text, sizeof text) && strcmp(text, "L3BzMA==") == 0);
  EXPECT(ps_base64_encode("abc", text, sizeof text) && strcmp(text, "YWJj") == 0);
  EXPECT(ps_base64_encode("ab", text, sizeof text) && strcmp(text, "YWI=") == 0);
  EXPECT(ps_base64_encode("", text, sizeof text) && strcmp(text, "") == 0);
  EXPECT(!ps_base64_encode("/ps/", text, 8));
}

static void read_all(const char *json) {
  struct ps_etcd_reply reply;
  int entries = 0;
  if (!ps_etcd_reply_open(&reply, json)) return;
  while (ps_etcd_reply_next(&reply, key, value)) EXPECT(++entries <= (int)strlen(json));
}

static void refuse(const char *json) {
  struct ps_etcd_reply reply;
  EXPECT(!ps_etcd_reply_open(&reply, json) || !ps_etcd_reply_next(&reply, key, value) || value[0] == '\0');
}

/* Each text is in its own memory, so that the sanitizer finds reads beyond it. */
static void read_copy(const char *json, size_t bytes) {
  struct ps_etcd_reply reply;
  char *copy = malloc(bytes + 1);
  EXPECT(copy != NULL);
  memcpy(copy, json, bytes);
  copy[bytes] = '\0';
  read_all(copy);
  EXPECT(bytes == strlen(whole) || !ps_etcd_reply_open(&reply, copy));
  free(copy);
}

int main(void) {
  char changed[sizeof whole];
  read_whole();
  encode();
  refuse("");
  refuse("{}");
  refuse("{\"header\":{}");
  refuse("{\"header\":{}}}");
  refuse("{\"header\":\"}");
  refuse("{\"header\":\"\\");
  refuse("<html>\"header\"</html>");
  refuse("{\"header\":{},\"kvs\":null}");
  refuse("{\"header\":{},\"kvs\":[{\"key\":\"L3A=\",\"value\":\"b*==\"}]}");
  refuse("{\"header\":{},\"kvs\":[{\"key\":\"L3A=\",\"value\":\"YQ\\u003d\"}]}");
  refuse("{\"header\":{},\"kvs\":[{\"key\":\"L3A=\",\"value\":\"YQBi\"}]}");
  for (size_t bytes = 0; bytes < sizeof whole; bytes++) read_copy(whole, bytes);
  for (size_t i = 0; i + 1 < sizeof whole; i++) {
    for (const char *c = "\"\\{}[],:=A\x01\xff"; *c != '\0'; c++) {
      memcpy(changed, whole, sizeof whole);
      changed[i] = *c;
      read_copy(changed, sizeof whole - 1);
    }
  }
  return 0;
}
