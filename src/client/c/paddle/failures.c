/* The last error of each thread; the first error of each code is also printed. */
#include "failures.h"

#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>

#define TEXT_BYTES 1280
#define CODES 128

static _Thread_local char last[TEXT_BYTES];
static atomic_bool was_printed[CODES];

/* A trainer that ignores what calls return must not fill its log with one line per batch. */
static void print_once(pserver_status code) {
  if ((unsigned)code >= CODES || atomic_exchange(&was_printed[code], true)) return;
  fprintf(stderr, "%s\n(paddle_pserver_last_error() returns further failures with %s)\n", last,
          pserver_status_name(code));
}

int ps_refuse(const char *function, pserver_status code, const char *format, ...) {
  char text[TEXT_BYTES / 2];
  va_list arguments;
  va_start(arguments, format);
  vsnprintf(text, sizeof text, format, arguments);
  va_end(arguments);
  snprintf(last, sizeof last, "%s: %s: %s", function, pserver_status_name(code), text);
  print_once(code);
  return -1;
}

int ps_refuse_as_core(const char *function) {
  const char *message;
  pserver_status code = pserver_last_error(&message);
  snprintf(last, sizeof last, "%s: %s: %s", function, pserver_status_name(code), message);
  print_once(code);
  return -1;
}

const char *ps_last_refusal(void) { return last; }
