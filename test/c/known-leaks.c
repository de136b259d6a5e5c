/* Linked into programs that AddressSanitizer checks: leaks of the libraries below, as in valgrind.supp. */

/* Called by the sanitizer when the program ends. */
const char *__lsan_default_suppressions(void);

const char *__lsan_default_suppressions(void) {
  /* A message that cnats was in the middle of reading when its connection ended. */
  return "leak:natsBuf_Create\n";
}
