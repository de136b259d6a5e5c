/* Reads lists of broker addresses, and checks that errors repeat nothing of a malformed list. */
#include "wire/wire.h"

#include <string.h>

#include "errors/errors.h"
#include "expect.h"

#define COUNT(table) (sizeof table / sizeof table[0])

static bool is_text(const char *text, const char *expected) {
  return text == NULL || expected == NULL ? text == expected : strcmp(text, expected) == 0;
}

static void check_read(void) {
  static const struct {
    const char *list;
    int count;
    const char *first, *last, *host, *user, *password, *token;
    bool wants_tls;
  } cases[] = {
      {"nats://h:4222", 1, "nats://h:4222", "nats://h:4222", "h", NULL, NULL, NULL, false},
      {"h", 1, "h", "h", "h", NULL, NULL, NULL, false},
      {"TLS://H:1/", 1, "TLS://H:1", "TLS://H:1", "H", NULL, NULL, NULL, true},
      {"tls://u:p@a:1,tls://A:2", 2, "tls://a:1", "tls://A:2", "a", "u", "p", NULL, true},
      {"a:1, b:2", 2, "a:1", "b:2", NULL, NULL, NULL, NULL, false},
      {"nats://a:1,", 1, "nats://a:1", "nats://a:1", "a", NULL, NULL, NULL, false},
      {",nats://u:p@a, ,a:2, ", 2, "nats://a", "a:2", "a", "u", "p", NULL, false},
      {"a,b,a", 3, "a", "a", NULL, NULL, NULL, NULL, false},
      {"nats://a,nats://u:@b,nats://v:q@c", 3, "nats://a", "nats://c", NULL, "u", "", NULL, false},
      {"nats://t%40ken@a", 1, "nats://a", "nats://a", "a", NULL, NULL, "t@ken", false},
      {"u%3a:%2F%2c%25@a:1", 1, "a:1", "a:1", "a", "u:", "/,%", NULL, false},
      {"u:p:q@a", 1, "a", "a", "a", "u", "p:q", NULL, false},
      {"tls://u:p@[::1]:4222", 1, "tls://[::1]:4222", "tls://[::1]:4222", "::1", "u", "p", NULL, true},
  };
  for (size_t i = 0; i < COUNT(cases); i++) {
    struct ps_addresses addresses;
    if (ps_read_addresses(cases[i].list, &addresses) != PSERVER_OK)
      fprintf(stderr, "%s\n", cases[i].list);
    EXPECT(addresses.count == cases[i].count);
    EXPECT(is_text(addresses.servers[0], cases[i].first));
    EXPECT(is_text(addresses.servers[addresses.count - 1], cases[i].last));
    EXPECT(is_text(addresses.host, cases[i].host));
    EXPECT(is_text(addresses.user, cases[i].user));
    EXPECT(is_text(addresses.password, cases[i].password));
    EXPECT(is_text(addresses.token, cases[i].token));
    EXPECT(addresses.wants_tls == cases[i].wants_tls);
    ps_release_addresses(&addresses);
  }
}

/* "dragon" is in every password, and in nothing else. */
static void check_refused(void) {
  static const char *const lists[] = {"",
                                      ",",
                                      " , ",
                                      "nats://alice:1,,dragon@h",
                                      "alice:dragon@h,",
                                      "nats://",
                                      "nats://:4222",
                                      "nats://h:0",
                                      "nats://h:65536",
                                      "nats://h:port",
                                      "nats://h:",
                                      "http://h",
                                      "ws://h",
                                      "nats://h/path",
                                      "nats://[::1",
                                      "nats://h h",
                                      "\n",
                                      "h,\n",
                                      "h\n",
                                      "nats://h\t:1",
                                      "h\x7f",
                                      "nats://alice:pass/dragon@h",
                                      "nats://alice:dragon/@h",
                                      "nats://alice:12/dragon@h:4222",
                                      "nats://alice:dra@gon@h",
                                      "nats://alice:#dragon@h",
                                      "nats://alice:?dragon@h",
                                      "nats://al ice:dragon@h",
                                      "nats://alice:dragon,1@h",
                                      "nats://alice:1,dragon@h",
                                      "nats://alice:1,2,dragon@h",
                                      "alice:1,dragon:4@h",
                                      "nats://alice:dragon%2@h",
                                      "nats://alice:%zzdragon@h",
                                      "nats://alice:dragon%00@h",
                                      "nats://alice:dragon@",
                                      "nats://alice:dragon@h:dragon",
                                      "alice:dragon://@h",
                                      "dragon://alice@h",
                                      "nats://alice:dragon@h,tls://h",
                                      "tls://h,nats://alice:dragon@h",
                                      "tls://alice:dragon@h,h"};
  for (size_t i = 0; i < COUNT(lists); i++) {
    struct ps_addresses addresses;
    pserver_status status = ps_read_addresses(lists[i], &addresses);
    if (status != PSERVER_ERR_BAD_VALUE) fprintf(stderr, "%s\n", lists[i]);
    EXPECT(status == PSERVER_ERR_BAD_VALUE);
    EXPECT(strstr(ps_last_error()->text, "dragon") == NULL);
    EXPECT(strstr(ps_last_error()->text, "alice") == NULL);
    ps_release_addresses(&addresses);
  }
}

/** A list that is too long is cut, and not written beyond its memory. */
static void check_shown(void) {
  pserver_options options;
  char shown[16];
  pserver_options_init(&options);
  options.url = "nats://alice:dragon@h:1,nats://bob:dragon@longer:2";
  ps_shown_address(&options, shown, sizeof shown);
  EXPECT(strcmp(shown, "nats://h:1,nats") == 0);
  options.url = "nats://alice:pass/dragon@h";
  ps_shown_address(&options, shown, sizeof shown);
  EXPECT(shown[0] == '\0');
}

int main(void) {
  check_read();
  check_refused();
  check_shown();
  return 0;
}
